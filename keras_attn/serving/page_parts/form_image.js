// Labels of an image, which is dropped, pasted or chosen. Models read PNG; the browser converts
// other formats.
const LONGEST_IN_LINK = 8000;  // characters
const TOO_LONG = "too long";

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const pngOf = (base64) => new Blob([bytesOf(base64)], { type: "image/png" });
const megabytes = (bytes) => `${Number((bytes / 1e6).toPrecision(2))} MB`;

async function base64Of(blob) {
  let binary = "";
  for (const byte of new Uint8Array(await blob.arrayBuffer())) binary += String.fromCharCode(byte);
  return btoa(binary);
}

async function asPng(file, bitmap) {
  if (file.type === "image/png") return file;
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  return canvas.convertToBlob({ type: "image/png" });
}

function paint(canvas, bitmap) {
  const { width, height } = bitmap;
  Object.assign(canvas, { width, height }).getContext("2d").drawImage(bitmap, 0, 0);
}

FORMS.image = {
  title: "Labels of an image",
  tasks: ["image_classification"],
  needs: "n_best",
  blames: "image",
  chosen: null,  // the image, as a file or a blob
  size: 0,  // of the image that was sent

  build(model) {
    const examples = [...new Set((model.examples.serving_default ?? []).map(
      ({ image_bytes: { b64 } }) => b64))];
    const file = make("input", { type: "file", accept: "image/*", id: "field-image" });
    const canvas = make("canvas", { id: "preview", role: "img", ariaLabel: "The image", width: 0 });
    // What a link contains of the image.
    const kept = make("input", { type: "hidden", name: "image", value: examples[0] ?? "" });
    kept.onchange = () => {
      this.chosen = null;
      try {
        if (kept.value && kept.value !== TOO_LONG) this.chosen = pngOf(kept.value);
      } catch {}  // a damaged link has no image
    };
    kept.onchange();
    const choose = (image, files) => {
      this.chosen = image;
      file.files = files.files;  // its name
      kept.value = "";
      askAgain();
    };
    const give = (image) => {
      if (!image) return;
      const files = new DataTransfer();
      files.items.add(image);
      choose(image, files);
    };
    const drop = make("div", { className: "drop" }, canvas,
      field(file, "Image: drop it here, paste it, or choose a file"), kept);
    file.onchange = () => give(file.files[0]);
    drop.ondragover = (event) => {
      event.preventDefault();
      drop.classList.add("over");
    };
    drop.ondragleave = () => drop.classList.remove("over");
    drop.ondrop = (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      give(event.dataTransfer.files[0]);
    };
    const button = (base64, number) => {
      const small = make("canvas", { width: 0 });
      createImageBitmap(pngOf(base64)).then((bitmap) => paint(small, bitmap), () => {});
      return make("button", { type: "button", ariaLabel: `Example ${number + 1}`,
        onclick: () => choose(pngOf(base64), new DataTransfer()) }, small);
    };
    return [drop, ...(examples.length > 1
      ? [make("div", { className: "examples" }, "Examples:", ...examples.map(button))] : [])];
  },

  async request() {
    const kept = byId("form").elements.namedItem("image");
    if (!this.chosen)
      throw new FieldError("image", "Choose an image. Links only contain small images.");
    try {
      const bitmap = await createImageBitmap(this.chosen);
      paint(byId("preview"), bitmap);
      const png = await asPng(this.chosen, bitmap), b64 = await base64Of(png);
      kept.value = b64.length <= LONGEST_IN_LINK ? b64 : TOO_LONG;
      this.size = png.size;
      const fields = fieldsOfForm();
      return { signature: "n_best", instances: [{ image_bytes: { b64 } }], fields };
    } catch {
      byId("preview").width = 0;
      throw new FieldError("image", "The browser cannot read this as an image.");
    }
  },

  explain({ message, status }) {
    const most = /at most (\d+) bytes/.exec(message)?.[1];
    if (!most) return message;
    // In a body, three bytes are four characters.
    const limit = status === 413 ? 0.75 * most : most;
    return `The image is too large: ${megabytes(this.size)} as PNG. `
      + `The server takes images up to ${megabytes(limit)}.`;
  },

  show: FORMS.labels.show,
  looks: ({ instances }) => instances,
};

document.addEventListener("paste", (event) => {
  const file = [...event.clipboardData.files].find(({ type }) => type.startsWith("image/"));
  const control = byId("field-image");
  if (!file || !control) return;
  const files = new DataTransfer();
  files.items.add(file);
  control.files = files.files;
  control.dispatchEvent(new Event("change"));
});
