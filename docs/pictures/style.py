"""Colors of pictures that are read on light and on dark pages."""

import matplotlib

matplotlib.use("agg")
GRAY = "#7f8b97"
BLUE = "#3b82d6"
LOOK = {
    "text.color": GRAY,
    "axes.labelcolor": GRAY,
    "axes.edgecolor": GRAY,
    "xtick.color": GRAY,
    "ytick.color": GRAY,
    "font.size": 10,
    "savefig.transparent": True,
    "savefig.dpi": 110,
}
