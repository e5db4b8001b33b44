"""Question answering: windows, the best part of all, places, losses, data, exports; mistakes."""

import json

import numpy as np
import pyarrow.parquet
import pytest
import tensorflow as tf

from keras_attn.data import QuestionExamples, Questions, read_questions
from keras_attn.models import Bert, TokenClassifier
from keras_attn.tasks import QuestionAnsweringTask, measure_answers, open_exported
from keras_attn.tokenizers import train_tokenizer
from keras_attn.tokenizers.question_windows import WindowFormat, question_windows
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import reloaded
from tests.written import written

pytestmark = pytest.mark.tensorflow

CONTEXT = "Anna LIVES in rome, and däN does not."
QUESTIONS = [f"who\t{CONTEXT}", "who\t", "dan\tanna", f"does dan live in rome?\t{CONTEXT * 2}"]


def make_task(max_length=16, **options):
    tokenizer = train_tokenizer("characters", ["abcdefghijklmnopqrstuvwxyz ,.?ä"], lowercase=True)
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
    model = TokenClassifier(Bert(tokenizer.vocabulary_size, **sizes), 2)
    options = {"overlap": 3, "max_answer_length": 4, "segments": True} | options
    return QuestionAnsweringTask(spread_weights(model, 5), tokenizer, max_length, **options)


def brute_force(task, question, context):
    """All parts of all windows, one window after the other: score, begin and end in characters."""
    ids = task.tokenizer.tokenize([question, context]).to_list()
    asked, tokens = ids[0][: task.max_question_length], ids[1]
    room = task.max_length - 3 - len(asked)
    step = max(room - task.overlap, (room + 1) // 2)
    parts, nothing, first = [], [], 0
    while True:
        window = tokens[first : first + room]
        row = np.array([[1, *asked, 2, *window, 2]], "int32")
        segments = np.array([[0] * (len(asked) + 2) + [1] * (len(window) + 1)], "int32")
        logits = task.backbone({"token_ids": row, "segment_ids": segments}).numpy()[0]
        nothing.append(logits[0].sum())
        begin = len(asked) + 2
        for i in range(len(window)):
            for j in range(i, min(i + task.max_answer_length, len(window))):
                score = logits[begin + i, 0] + logits[begin + j, 1]
                parts.append((score, first + i, first + j + 1))  # a token is a character
        if first + room >= len(tokens):
            return parts, min(nothing)
        first += step


@pytest.mark.parametrize("no_answer", [False, True])
def test_answers_by_brute_force(no_answer):
    task = make_task(no_answer=no_answer)
    answered = task.answers(QUESTIONS)
    kinds = set()
    for source, answer in zip(QUESTIONS, answered, strict=True):
        question, context = source.split("\t")
        parts, nothing = brute_force(task, question, context)
        kinds.add(bool(answer.text))
        scores = np.array([score for score, *_ in parts])
        if not parts or (no_answer and nothing > scores.max()):
            assert answer[0] == ""
            assert answer[2:] == (0, 0)
            continue
        best, begin, end = max(parts)
        total = np.exp(np.append(scores, [nothing] * no_answer) - best).sum()
        assert answer.score == pytest.approx(1 / total, rel=1e-3)
        assert context[answer.start : answer.end] == answer.text == context[begin:end].strip()
    assert kinds == {False, True}


def test_windows_by_hand():
    tokenizer = make_task().tokenizer
    form = WindowFormat(max_length=12, overlap=2, max_question_length=3, ends_between=2)
    found = question_windows(tokenizer, ["abcdef", "a"], ["abcdefgh", ""], form)
    a = tokenizer.tokenize(["abcdefgh"]).to_list()[0]
    first = [1, *a[:3], 2, 2]  # of the question three tokens, so five are left, in steps of three
    assert found.ids.to_list() == [
        [*first, *a[:5], 2],
        [*first, *a[3:8], 2],
        [1, a[0], 2, 2, 2],
    ]
    assert found.counts.numpy().tolist() == [2, 1]
    assert found.first.numpy().tolist() == [0, 3, 0]


def test_saved_and_exported(tmp_path):
    task = make_task(no_answer=True, ends_between=2)
    loaded = reloaded(task, tmp_path / "task")
    assert loaded.answers(QUESTIONS) == task.answers(QUESTIONS)
    exported = open_exported(task.export(tmp_path / "exported"))
    for ours, theirs in zip(exported.answers(QUESTIONS), task.answers(QUESTIONS), strict=True):
        assert (ours.text, *ours[2:]) == (theirs.text, *theirs[2:])
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)
    tabs = "anna\tdan"
    assert exported.answer("who", tabs)[2:] == task.answer("who", tabs.replace("\t", " "))[2:]


def test_loss_by_hand():
    task = make_task()
    logits = np.zeros((3, 5, 2), "float32")
    logits[0, 3, 0], logits[0, 1, 0], logits[0, 4, 1] = (
        2.0,
        9.0,
        1.0,
    )  # position 1 is the question's
    labels = tf.constant([[3, 4, 2, 5], [0, 0, 2, 4], [-1, -1, 0, 0]])
    outputs = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss, _, count, right = task.loss(labels, outputs)
    starts, ends = np.log(3 + np.exp(2.0)) - 2, np.log(3 + np.e) - 1  # of four positions
    assert float(loss) == pytest.approx((starts + ends) / 2 + np.log(3), rel=1e-5)
    assert (float(count), float(right)) == (2, 2)
    gradient = tape.gradient(loss, outputs).numpy()
    assert not gradient[2].any()
    assert not gradient[0, 1].any()
    assert gradient[0, 2:].all()


def test_examples_point_to_the_answers():
    task = make_task()
    start = CONTEXT.index("rome")
    questions = Questions([f"who\t{CONTEXT}", f"a\t{CONTEXT}"], [("rome",), ()], starts=[start, -1])
    form = task.window_format
    examples = QuestionExamples.from_questions(questions, task.tokenizer, form, segments=True)
    inputs, labels = examples.assemble(np.arange(len(examples)))
    found = 0
    for ids, segments, (begin, end, first, behind) in zip(
        inputs["token_ids"], inputs["segment_ids"], labels, strict=True
    ):
        assert segments[first:behind].all()
        assert not segments[:first].any()
        spelled = task.tokenizer.detokenize([ids[begin : end + 1]]).numpy()[0].decode()
        if end:
            found += 1
            assert spelled == "rome"
            assert first <= begin <= end < behind
    assert found >= 1
    assert not labels[examples.indices == 1][:, :2].any()
    expected = task.model_inputs(tf.constant(inputs["token_ids"]))
    np.testing.assert_array_equal(inputs["segment_ids"], expected["segment_ids"])


def test_measured():
    task = make_task()
    right = task.predict(QUESTIONS[:1])[0]
    sources = [QUESTIONS[0], QUESTIONS[0], QUESTIONS[2]]
    questions = Questions(sources, [("x",), (right,), ("zzz",)], starts=[0, 0, 0])
    assert measure_answers(task, questions, ["exact_match"]) == {"items": 2, "exact_match": 50.0}


SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "Ann\tlives in Rome, Ann.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Who?",
                            "answers": [{"text": "Ann", "answer_start": 19}],
                        },
                        {"id": "2", "question": "When?", "is_impossible": True, "answers": []},
                    ],
                }
            ]
        }
    ]
}


def test_files(tmp_path):
    path = written(tmp_path / "squad.json", [json.dumps(SQUAD)])
    found = read_questions(path)
    assert found.sources[0] == "Who?\tAnn lives in Rome, Ann."
    assert (found.targets, found.starts) == ([("Ann",), ()], [19, -1])
    rows = ["question,context,answer,start", "who?,ann and ann,ann,8"]
    assert read_questions(written(tmp_path / "q.csv", rows)).starts == [8]
    rows = [row.rpartition(",")[0] for row in rows]
    refused(
        "q.csv.*found it 2 times; a column `start`",
        read_questions,
        written(tmp_path / "q.csv", rows),
    )
    rows = ["question,context,answer,start", "who?,ann and ann,ann,7"]
    refused("expected the answer at 7 .*found", read_questions, written(tmp_path / "q.csv", rows))
    SQUAD["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 18
    wrong = written(tmp_path / "wrong.json", [json.dumps(SQUAD)])
    refused("wrong.json, question 1: expected the answer at 18", read_questions, wrong)
    refused("SQuAD's form has an object", read_questions, written(tmp_path / "a.json", ["[1]"]))


def listed(texts, starts):
    answers = {"text": texts, "answer_start": starts}
    return {"question": "Who?", "context": "Ann lives in Rome, Ann.", "answers": answers}


def test_lists_of_answers(tmp_path):
    """SQuAD as the `datasets` library writes it."""
    rows = [listed(["Ann", "Ann."], [19, 19]), listed([], [])]
    path = written(tmp_path / "squad.jsonl", map(json.dumps, rows))
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, tmp_path / "squad.parquet")
    for file in (path, tmp_path / "squad.parquet"):
        found = read_questions(file)
        assert found.sources == ["Who?\tAnn lives in Rome, Ann."] * 2
        assert (found.targets, found.starts) == ([("Ann", "Ann."), ()], [19, -1])
    for wrong, message in {
        ("Ann",): "line 2: expected the answer at 18 of the context, found ' An' there",
        ("Ann", "Ann"): "line 2: expected texts, and lists of answers and of their places",
    }.items():
        rows[1] = listed(list(wrong), [18])
        path = written(tmp_path / "wrong.jsonl", map(json.dumps, rows))
        refused(message, read_questions, path)
        assert len(read_questions(path, skip_bad_lines=True)) == 1


def test_mistakes():
    task = make_task()
    refused("two texts with one tab between them. Received: text='who'", task.predict, ["who"])
    three = TokenClassifier(Bert(40, 1, 8, 2, 11), 3)
    refused("two outputs, begin and end.*outputs=3", QuestionAnsweringTask, three, task.tokenizer)
    refused("leave room for two tokens", make_task, max_length=4)
    two = TokenClassifier(Bert(9, 1, 8, 2, 11), 2)
    symbols = train_tokenizer("symbols", ["a b"])
    message = "tokenizer that knows the places.*tokenizer='symbols'"
    refused(message, QuestionAnsweringTask, two, symbols)
