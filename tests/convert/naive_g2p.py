"""The model of g2p_en in plain NumPy, and a made checkpoint of its form."""

import numpy as np

LETTERS = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
TOKENS = (
    "<pad> <unk> <s> </s> AA0 AA1 AA2 AE0 AE1 AE2 AH0 AH1 AH2 AO0 AO1 AO2 AW0 AW1 AW2 AY0 AY1 AY2 "
    "B CH D DH EH0 EH1 EH2 ER0 ER1 ER2 EY0 EY1 EY2 F G HH IH0 IH1 IH2 IY0 IY1 IY2 JH K L M N NG "
    "OW0 OW1 OW2 OY0 OY1 OY2 P R S SH T TH UH0 UH1 UH2 UW UW0 UW1 UW2 V W Y Z ZH"
)
PHONEMES = TOKENS.split()
MOST = 20


def made_arrays(features=7, seed=33):
    """Arrays of the checkpoint's names and forms, drawn so that outputs vary in their lengths."""
    rng = np.random.default_rng(seed)
    shapes = {"enc_emb": (len(LETTERS), features), "dec_emb": (len(PHONEMES), features)}
    for side in ("enc", "dec"):
        shapes |= {f"{side}_w_{of}": (3 * features, features) for of in ("ih", "hh")}
        shapes |= {f"{side}_b_{of}": (3 * features,) for of in ("ih", "hh")}
    shapes |= {"fc_w": (len(PHONEMES), features), "fc_b": (len(PHONEMES),)}
    arrays = {name: rng.normal(0, 1.5, shape).astype("float32") for name, shape in shapes.items()}
    arrays["fc_b"][:3] = -99  # never padding, unknown or a start
    arrays["fc_b"][3] += 2
    return arrays


def gru(arrays, side, x, h):
    """The equations in the documentation of `torch.nn.GRU`, one step."""
    of_input = arrays[f"{side}_w_ih"] @ x + arrays[f"{side}_b_ih"]
    of_state = arrays[f"{side}_w_hh"] @ h + arrays[f"{side}_b_hh"]
    (ir, iz, inew), (hr, hz, hnew) = np.split(of_input, 3), np.split(of_state, 3)
    r, z = 1 / (1 + np.exp(-ir - hr)), 1 / (1 + np.exp(-iz - hz))
    return (1 - z) * np.tanh(inew + r * hnew) + z * h


def encoded(arrays, word):
    h = np.zeros(arrays["enc_emb"].shape[1])
    for letter in [*word, "</s>"]:
        number = LETTERS.index(letter) if letter in LETTERS else LETTERS.index("<unk>")
        h = gru(arrays, "enc", arrays["enc_emb"][number], h)
    return h


def logits(arrays, word, phonemes):
    """Those of what follows the start and each phoneme, (phonemes + 1, 74)."""
    h, found = encoded(arrays, word), []
    for phoneme in ["<s>", *phonemes]:
        h = gru(arrays, "dec", arrays["dec_emb"][PHONEMES.index(phoneme)], h)
        found.append(arrays["fc_w"] @ h + arrays["fc_b"])
    return np.stack(found)


def predicted(arrays, word):
    """The most probable phoneme after the most probable phonemes, at most 20."""
    phonemes = []
    while len(phonemes) < MOST:
        best = PHONEMES[logits(arrays, word, phonemes)[-1].argmax()]
        if best == "</s>":
            break
        phonemes.append(best)
    return phonemes
