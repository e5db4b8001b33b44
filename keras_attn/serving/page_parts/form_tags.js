// Tags of words, as colors in the text and with their names.
const tagName = (tag) => tag.replace(/^[BIES]-/, "");

// Words with their tags; "I-" continues the span of the word before it.
function tagSpans(words, tags) {
  const spans = [];
  words.forEach((word, place) => {
    const last = spans.at(-1), tag = tags[place];
    if (/^[IE]-/.test(tag) && last?.name === tagName(tag)) last.words.push(word);
    else spans.push({ name: tagName(tag), words: [word] });
  });
  return spans;
}

function taggedText(spans) {
  const names = [...new Set(spans.map(({ name }) => name))].filter((name) => name !== "O").sort();
  return make("p", { className: "tagged" }, ...spans.flatMap(({ name, words }) => {
    if (name === "O") return [words.join(" "), " "];
    const mark = make("mark", { className: "tag" }, words.join(" "), make("small", {}, name));
    mark.style.setProperty("--hue", 250 + names.indexOf(name) * 137.5);
    return [mark, " "];
  }));
}

FORMS.tags = {
  title: "Tags in a text",
  tasks: ["token_classification"],
  needs: "serving_default",
  blames: "text",

  build(model) {
    return [textField("Text", exampleTexts(model))];
  },

  request() {
    return { signature: "serving_default", instances: [{ text: textOf() }] };
  },

  show({ predictions: [answer] }) {
    const words = answer.words.filter((word) => word !== "");
    const tags = answer.word_tags.slice(0, words.length);
    const rows = words.map((word, place) => [String(place + 1), word, tags[place],
      likely(answer.probabilities[place])]);
    return [
      taggedText(tagSpans(words, tags)),
      make("p", {}, term("log-probability"), ` of all tags: ${answer.log_probability.toFixed(3)}`),
      make("details", {}, make("summary", {}, "Each word"),
        table("answers", ["#", "Word", "Tag", term("probability")], rows)),
    ];
  },

  looks: ({ instances }) => instances,
};
