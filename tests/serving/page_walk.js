// Clicks through the demo page and notes what is seen. It is put behind the page's own script.
if (window === top) {
  const seen = [];
  let copied = null;
  navigator.clipboard.writeText = async (text) => { copied = text; };
  const violations = [];
  addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
  const texts = (query, root = document) =>
    [...root.querySelectorAll(query)].map((one) => one.textContent);
  const styles = (query, name) => [...document.querySelectorAll(query)]
    .map((one) => one.style.getPropertyValue(name));
  const note = (what) => seen.push({
    what,
    errors: Object.fromEntries([...document.querySelectorAll(".error")]
      .filter((one) => one.textContent).map((one) => [one.id, one.textContent])),
    forms: texts("#kind option"), form: byId("kind").value,
    fields: Object.fromEntries(new FormData(byId("form"))),
    best: texts("#answer .best")[0] ?? null,
    head: texts("#answer thead th"),
    rows: [...document.querySelectorAll("#answer tbody tr")].map((line) =>
      [...line.children].map((cell) => cell.textContent)),
    bars: [...document.querySelectorAll("#answer .bar rect")].map((bar) =>
      Number(bar.getAttribute("width"))),
    tags: texts("#answer .tag"), hues: styles("#answer .tag", "--hue"),
    cosines: styles("#answer .cosines td", "--at").map(Number),
    pressed: [...document.querySelectorAll("#answer .choice")].map((one) =>
      one.getAttribute("aria-pressed") === "true"),
    curl: texts("#request .curl")[0], python: texts("#request .python")[0],
    hidden: byId("attention").hidden, offered: byId("attention-offer").children.length === 1,
    pointed: byId("pointed").textContent,
    looking: texts("#rows .token"), lookedAt: texts("#columns .token"),
    weights: styles("#columns .token", "--at").map(Number),
    cells: [...document.querySelectorAll("#drawing .cell")].map((one) =>
      Number(one.getAttribute("fill-opacity"))),
    lines: document.querySelectorAll("#drawing .tie").length,
    group: byId("group").value, groups: texts("#group option"),
    layers: texts("#layer option"), heads: texts("#head option"),
    images: document.images.length, hash: location.hash, copied,
    stale: byId("stale").textContent, marks: texts("#answer .best mark"),
    cell: byId("cell").textContent, largest: byId("largest").textContent,
    patches: styles("#drawing .patch", "--at").map(Number),
    views: texts("#view option"), view: byId("view").value,
    mapWidth: [...document.querySelectorAll("#drawing svg")].map((one) =>
      one.getBoundingClientRect().width - byId("drawing").clientWidth)[0],
    names: texts("#drawing .column-label"),
    file: byId("field-image")?.files[0]?.name, preview: byId("preview")?.width,
    unlinked: byId("copy-link").disabled && texts("#no-link")[0],
    summaries: texts("summary"), focused: document.activeElement.id,
    unnamed: [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
      .filter((one) => !one.labels.length || !one.labels[0].textContent).map((one) => one.id),
  });
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const until = async (test) => { while (!test()) await pause(20); };
  const calm = async () => {
    await pause(20);
    await until(() => byId("ask").textContent === "Ask");
  };
  const set = async (id, value) => {
    byId(id).value = value;
    byId(id).dispatchEvent(new Event("change", { bubbles: true }));
    await calm();
  };
  const ask = async (id, text) => {
    if (text !== undefined) byId(id).value = text;
    byId("ask").click();
    await calm();
  };
  const restored = async (hash) => {
    location.hash = hash;
    await calm();
  };
  const typed = (id, text) => {
    byId(id).value = text;
    byId(id).dispatchEvent(new Event("input", { bubbles: true }));
  };
  const pressed = (key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true }));
  const dropped = async (base64, type, name = "image") => {
    const data = new DataTransfer();
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    data.items.add(new File([bytes], name, { type }));
    document.querySelector(".drop").dispatchEvent(new DragEvent("drop", {
      dataTransfer: data, bubbles: true, cancelable: true }));
    await calm();
  };
  const noise = async (size, type) => {
    const canvas = new OffscreenCanvas(size, size);
    const image = new ImageData(size, size);
    const most = 65536;  // of one call
    for (let begin = 0; begin < image.data.length; begin += most)
      crypto.getRandomValues(image.data.subarray(begin, begin + most));
    canvas.getContext("2d").putImageData(image, 0, 0);
    return base64Of(await canvas.convertToBlob({ type }));
  };
  // How many pixels the page of a link is wider than a narrow window, and its first answer.
  const narrow = async (hash) => {
    const frame = make("iframe", { width: 360, height: 900, src: "/" + hash });
    document.body.append(frame);
    await until(() => frame.contentDocument?.getElementById("answer")?.children.length
      && frame.contentDocument.getElementById("ask").textContent === "Ask");
    const { scrollWidth, clientWidth } = frame.contentDocument.documentElement;
    const best = texts("#answer .best, #answer .tag, #answer td", frame.contentDocument)[0];
    frame.remove();
    return [scrollWidth - clientWidth, best];
  };

  const walk = async () => {
    const frames = {};
    await calm(); note("start");
    byId("ask").click();
    note("asking");
    byId("ask").click(); byId("ask").click();
    await calm(); note("asked twice");
    await ask("field-text", "TEXT"); note("asked");
    document.querySelectorAll("#rows .token")[1].dispatchEvent(new MouseEvent("mouseenter"));
    note("pointed");
    document.querySelectorAll("#rows .token")[1].focus();
    pressed("ArrowRight"); note("moved by key");
    document.querySelector("#drawing svg").focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) pressed(key);
    note("cell");
    await set("head", "1"); note("head");
    await set("group", "encoder"); note("encoder");
    document.querySelectorAll("#answer .choice")[1].click(); await calm(); note("second");
    await set("group", "cross");
    await set("view", "lines");
    document.querySelectorAll("#columns .token")[2].focus(); note("lines");
    byId("copy-link").click(); await calm(); note("link");
    const link = copied;
    document.querySelector("#request button").click(); await calm(); note("curl copied");
    document.querySelector("#answer .term").focus();
    pressed("Escape"); note("closed");
    const hint = document.querySelector("#answer .term .hint");
    const closed = [getComputedStyle(hint).display, document.activeElement === hint.parentElement];
    typed("field-text", "fed"); byId("copy-link").click(); await calm(); note("edited");
    await restored(new URL(copied).hash + "&again="); note("edit restored");
    typed("field-text", TEXT); byId("ask").click();
    typed("field-text", "fe"); byId("ask").click(); await calm(); note("overtaken");
    byId("ask").click(); typed("field-text", "f"); await calm(); note("typed while asking");
    await ask("field-text", ""); note("empty");
    await restored(location.hash + "&again="); note("empty again");
    await ask("field-text", QUOTES); note("quotes");
    await ask("field-text", EVIL.repeat(3)); note("too long");
    await set("kind", "any"); note("all signatures");
    await set("field-signature", "token_ids");
    await ask("input-source_ids", EVIL); note("no JSON");
    await ask("input-source_ids", "[5, 999999, 2]"); note("unknown id");
    await set("field-signature", "attention");
    byId("input-target").value = "AA"; await ask("input-text", "TEXT"); note("attention alone");
    await restored(new URL(link).hash); note("restored");
    frames.tiny = await narrow(new URL(link).hash);
    for (const name of KINDS) {
      await set("model", name); note(name);
      frames[name] = await narrow(location.hash);
    }
    await set("model", "embedding");
    await ask("field-text", `the cat sat\n\nthe mat\n${EVIL}`); note("compared");
    await ask("field-text", "the cat"); note("alone");
    await set("model", "masked_lm");
    await ask("field-text", "the [MASK] sat [MASK]"); note("two gaps");
    await ask("field-text", "the cat"); note("no gap");
    await set("model", "token_classification");
    await ask("field-text", "the <b>"); note("evil words");
    await set("model", "causal_lm");
    byId("field-temperature").value = 0.5; byId("field-seed").value = 7;
    await ask("field-samples", 2); note("sampled");
    const sampled = location.hash;
    await ask("field-top_p", 2); note("no probability");
    await set("field-method", "n_best"); await ask("field-text", "ab"); note("most probable");
    await restored(sampled); note("sampled again");
    await ask("field-text", ""); note("nothing to continue");
    await restored(location.hash + "&again="); note("nothing to continue again");
    await set("model", "image_classification");
    const chosen = new DataTransfer();
    chosen.items.add(new File([bytesOf(PNG)], "chosen.png", { type: "image/png" }));
    byId("field-image").files = chosen.files;
    byId("field-image").dispatchEvent(new Event("change")); await calm();
    await dropped(PNG, "image/png", "dropped.png"); note("dropped");
    document.querySelectorAll("#drawing .patch")[1].dispatchEvent(new MouseEvent("mouseenter"));
    note("patch");
    document.querySelectorAll("#drawing .patch")[1].focus();
    pressed("ArrowDown"); note("patch below");
    await set("view", "map"); note("map of patches");
    await set("view", "picture");
    await dropped(await noise(5, "image/jpeg"), "image/jpeg"); note("converted");
    await dropped(await noise(46, "image/png"), "image/png"); note("large");
    const large = location.hash;
    await dropped(await noise(60, "image/png"), "image/png"); note("too large");
    await dropped(await noise(200, "image/png"), "image/png"); note("much too large");
    model.signatures.attention.outputs.encoder.tensor_shape.dim[3].size = "1000000";
    await dropped(PNG, "image/png"); note("many weights");
    document.querySelector("#attention-offer button").click(); await calm(); note("looked");
    await dropped(btoa("no image"), "image/png"); note("no image");
    await set("model", "toy"); note("toy");
    await restored(large); note("large again");
    await restored("#model=" + encodeURIComponent(EVIL)); note("unknown model");
    const used = performance.getEntriesByType("resource").map(({ name }) => name);
    const outside = used.filter((name) => !name.startsWith(location.origin));
    const examples = (...list) =>
      ({ examples: { serving_default: list.map((text) => ({ text })) } });
    const parts = (...given) => filledText(...given).map((part) => part.textContent ?? part);
    const small = {
      readable: readable("▁a b"),
      examples: exampleTexts(examples(" ", "", "\u200b", "a", "\n")),
      gaps: FORMS.text.build(examples("a <extra_id_0> b")).map((one) => one.textContent),
      plain: FORMS.text.build(examples("a")).map((one) => one.textContent),
      filled: [parts("a [MASK] b [MASK].", "a x b yz."), parts("[MASK]", "x"),
        parts("play [MASK] now [MASK]", "playing now x"), parts("[MASK] [MASK]", "xy"),
        parts("a [MASK][MASK] b", "a xy b"), parts("b [MASK]", "c")],
    };
    return { frames, violations, outside, closed, small };
  };

  walk().catch((error) => { window.failed = String(error.stack); }).then((found) => {
    const result = { seen, title: document.title, error: window.failed || null, ...found };
    document.body.append(make("pre", { id: "seen" }, JSON.stringify(result)));
  });
}
