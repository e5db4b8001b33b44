// Labels of an image, which is dropped, pasted or chosen. Models read PNG; the browser converts
// other formats.
const LONGEST_IN_LINK = 8000;  // characters
const TOO_LONG = "too long";

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

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

FORMS.image = {
  title: "Labels of an image",
  tasks: ["image_classification"],
  needs: "n_best",
  blames: "image",
  chosen: null,  // a file; otherwise the image is that of the example or the link

  build(model) {
    this.chosen = null;
    const file = make("input", { type: "file", accept: "image/*", id: "field-image" });
    const canvas = make("canvas", { id: "preview", role: "img", ariaLabel: "The image", width: 0 });
    const kept = make("input", { type: "hidden", name: "image",
      value: model.examples.serving_default?.[0]?.image_bytes.b64 ?? "" });
    const drop = make("div", { className: "drop" }, canvas,
      field(file, "Image: drop it here, paste it, or choose a file"), kept);
    const choose = (files) => {
      if (!files.length) return;
      [this.chosen] = files;
      askAgain();
    };
    file.onchange = () => choose(file.files);
    drop.ondragover = (event) => {
      event.preventDefault();
      drop.classList.add("over");
    };
    drop.ondragleave = () => drop.classList.remove("over");
    drop.ondrop = (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      choose(event.dataTransfer.files);
    };
    return [drop];
  },

  async request() {
    const kept = byId("form").elements.namedItem("image");
    if (!this.chosen && (!kept.value || kept.value === TOO_LONG))
      throw new FieldError("image", "Choose an image. Links only contain small images.");
    try {
      const blob = this.chosen ?? new Blob([bytesOf(kept.value)], { type: "image/png" });
      const bitmap = await createImageBitmap(blob);
      const { width, height } = bitmap;
      Object.assign(byId("preview"), { width, height }).getContext("2d").drawImage(bitmap, 0, 0);
      const b64 = await base64Of(await asPng(blob, bitmap));
      kept.value = b64.length <= LONGEST_IN_LINK ? b64 : TOO_LONG;
      return { signature: "n_best", instances: [{ image_bytes: { b64 } }] };
    } catch {
      throw new FieldError("image", "The browser cannot read this as an image.");
    }
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
