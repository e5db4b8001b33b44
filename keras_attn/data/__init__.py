"""Data loading: files are read, tokenized or decoded once, and streamed in batches by length."""

from keras_attn.data.batching import EpochPlan, padding_share, plan_epoch
from keras_attn.data.datasets.cmudict import load_cmudict
from keras_attn.data.datasets.digits import load_digits
from keras_attn.data.datasets.listops import load_listops
from keras_attn.data.datasets.pathfinder import load_pathfinder, load_pathfinder_images
from keras_attn.data.datasets.recall import (
    load_duplication,
    load_induction,
    load_recall,
    load_selective_copying,
)
from keras_attn.data.examples.base import Examples
from keras_attn.data.examples.corrupted import CorruptedExamples
from keras_attn.data.examples.image import ImageExamples
from keras_attn.data.examples.labelled import LabelledExamples
from keras_attn.data.examples.masked import MaskedExamples
from keras_attn.data.examples.pair import PairExamples
from keras_attn.data.examples.partner import PartnerExamples
from keras_attn.data.examples.question import QuestionExamples
from keras_attn.data.examples.ranked import RankedExamples
from keras_attn.data.examples.tagged import TaggedExamples, read_tagged_texts
from keras_attn.data.examples.text import TextExamples
from keras_attn.data.examples.window import WindowExamples
from keras_attn.data.files import Pairs, read_pairs, read_texts
from keras_attn.data.images import (
    ImageFile,
    check_images,
    decode_images,
    images_to_array,
    read_images,
    scaled_pixels,
)
from keras_attn.data.labelled_images import read_labelled_images
from keras_attn.data.masking import Masking, require_mask_token
from keras_attn.data.pipeline import batch_dataset
from keras_attn.data.questions import Questions, read_questions
from keras_attn.data.ranked_passages import RankedPassages, read_ranked_passages
from keras_attn.data.scored_pairs import ScoredPairs, has_scores, read_scored_pairs
from keras_attn.data.series.reading import read_series
from keras_attn.data.series.series import SeriesPart, SeriesTable
from keras_attn.data.span_corruption import SpanCorruption, SpanNoise
from keras_attn.data.split import group_references, hold_out
from keras_attn.data.stored.cache import Cache
from keras_attn.data.stored.token_rows import TokenRows
from keras_attn.renamed import old_names

__all__ = [
    "Cache",
    "CorruptedExamples",
    "EpochPlan",
    "Examples",
    "ImageExamples",
    "ImageFile",
    "LabelledExamples",
    "MaskedExamples",
    "Masking",
    "PairExamples",
    "Pairs",
    "PartnerExamples",
    "QuestionExamples",
    "Questions",
    "RankedExamples",
    "RankedPassages",
    "ScoredPairs",
    "SeriesPart",
    "SeriesTable",
    "SpanCorruption",
    "SpanNoise",
    "TaggedExamples",
    "TextExamples",
    "TokenRows",
    "WindowExamples",
    "batch_dataset",
    "check_images",
    "decode_images",
    "group_references",
    "has_scores",
    "hold_out",
    "images_to_array",
    "load_cmudict",
    "load_digits",
    "load_duplication",
    "load_induction",
    "load_listops",
    "load_pathfinder",
    "load_pathfinder_images",
    "load_recall",
    "load_selective_copying",
    "padding_share",
    "plan_epoch",
    "read_images",
    "read_labelled_images",
    "read_pairs",
    "read_questions",
    "read_ranked_passages",
    "read_scored_pairs",
    "read_series",
    "read_tagged_texts",
    "read_texts",
    "require_mask_token",
    "scaled_pixels",
]

__getattr__ = old_names(__name__, {"decoded_images": "images_to_array"}, globals())
