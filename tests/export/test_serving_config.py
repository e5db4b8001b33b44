"""Configuration of TensorFlow Serving: read by its own messages, or by what its sources declare."""

import shutil

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from keras_attn.export import export_saved_model
from keras_attn.export.serving_config import write_serving_config
from keras_attn.export.warmup import MAX_ROWS, read_warmup
from tests.export.toy import ToyTask
from tests.refusals import refused

FILES = ["models.config", "batching.config", "monitoring.config"]
MANIFESTS = ["docker-compose.yaml", "kubernetes.yaml"]


@pytest.fixture(scope="module")
def written(toy_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving") / "toy"
    return {path.name: path for path in write_serving_config(toy_model.parent, folder)}


def message(**messages):
    """Message classes by the names, numbers and types that a .proto file declares."""
    file = descriptor_pb2.FileDescriptorProto(
        name="declared.proto",
        package="declared",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )
    for name, fields in messages.items():
        declared = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), start=1):
            label = 3 if kind.startswith("repeated") else 1
            added = declared.field.add(name=field, number=number, label=label)
            kind = kind.removeprefix("repeated ")
            scalars = {"bool": 8, "int64": 3, "string": 9}
            if kind in scalars:
                added.type = scalars[kind]
            else:
                added.type, added.type_name = 11, kind
    from google.protobuf import wrappers_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    name = next(reversed(messages))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"declared.{name}"))


# tensorflow_serving/servables/tensorflow/session_bundle_config.proto; no Python package has it.
INT64, STRING = ".google.protobuf.Int64Value", ".google.protobuf.StringValue"
BatchingParameters = message(
    BatchingParameters={
        "max_batch_size": INT64,
        "batch_timeout_micros": INT64,
        "max_enqueued_batches": INT64,
        "num_batch_threads": INT64,
        "thread_pool_name": STRING,
        "allowed_batch_sizes": "repeated int64",
        "pad_variable_length_inputs": "bool",
    }
)
# tensorflow_serving/config/monitoring_config.proto
MonitoringConfig = message(
    PrometheusConfig={"enable": "bool", "path": "string"},
    MonitoringConfig={"prometheus_config": ".declared.PrometheusConfig"},
)


def test_all_files_are_written_and_nothing_else(written):
    folder = written["models.config"].parent
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, *MANIFESTS])


def test_the_server_reads_the_models(written):
    config = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    parsed = text_format.Parse(written["models.config"].read_text(), config.ModelServerConfig())
    [model] = parsed.model_config_list.config
    names = (model.name, model.base_path, model.model_platform)
    assert names == ("toy", "/models/toy", "tensorflow")
    assert model.model_version_policy.latest.num_versions == 1
    # What the comment advises.
    advice = written["models.config"].read_text().splitlines()[1].partition(": ")[2]
    changed = text_format.Parse(advice, config.ModelConfig())
    assert changed.model_version_policy.specific.versions == [3, 4]


def test_the_server_reads_how_it_makes_batches(written, toy_model):
    parsed = text_format.Parse(written["batching.config"].read_text(), BatchingParameters())
    assert parsed.max_batch_size.value >= MAX_ROWS
    # A server refuses a request of more rows, and a model whose warm-up it refuses.
    largest = max(len(next(iter(inputs.values()))) for _, inputs in read_warmup(toy_model))
    assert largest <= MAX_ROWS
    assert parsed.batch_timeout_micros.value == 2000
    assert not parsed.HasField("num_batch_threads")
    # It would pad ids by the first of them.
    assert not parsed.pad_variable_length_inputs
    assert not parsed.allowed_batch_sizes
    assert "(token_ids)" in written["batching.config"].read_text()


def test_the_server_reads_what_it_measures(written):
    parsed = text_format.Parse(written["monitoring.config"].read_text(), MonitoringConfig())
    assert parsed.prometheus_config.enable
    assert parsed.prometheus_config.path == "/monitoring/prometheus/metrics"


ARGUMENTS = [
    "--model_config_file=/config/models.config",
    "--monitoring_config_file=/config/monitoring.config",
    "--enable_batching=true",
    "--batching_parameters_file=/config/batching.config",
]


def test_docker_compose_mounts_model_and_configuration(written, toy_model):
    path = written["docker-compose.yaml"]
    [service] = yaml.safe_load(path.read_text())["services"].values()
    assert service["image"].startswith("tensorflow/serving:")
    assert service["command"] == ARGUMENTS
    assert service["ports"] == ["127.0.0.1:8500:8500", "127.0.0.1:8501:8501"]
    model, config = service["volumes"]
    assert (path.parent / model["source"]).resolve() == toy_model.parent
    assert model["source"].startswith("./")
    assert model["target"] == "/models/toy"
    assert (config["source"], config["target"]) == (".", "/config")
    assert model["read_only"]
    assert config["read_only"]


def test_kubernetes_has_the_same_files_probes_and_ports(written):
    config, deployment, service = yaml.safe_load_all(written["kubernetes.yaml"].read_text())
    kinds = [it["kind"] for it in (config, deployment, service)]
    assert kinds == ["ConfigMap", "Deployment", "Service"]
    assert config["data"] == {name: written[name].read_text() for name in FILES}
    pods = deployment["spec"]["template"]
    [container] = pods["spec"]["containers"]
    assert container["args"] == ARGUMENTS
    status = {"path": "/v1/models/toy", "port": "rest"}
    assert container["readinessProbe"]["httpGet"] == status
    assert container["startupProbe"]["httpGet"] == status
    labels = pods["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    named = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert named == {"grpc": 8500, "rest": 8501}
    assert {port["targetPort"]: port["port"] for port in service["spec"]["ports"]} == named
    volumes = {volume["name"]: volume for volume in pods["spec"]["volumes"]}
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"config": "/config", "model": "/models/toy"}


def test_xla_is_asked_for_and_batches_have_few_sizes(tmp_path):
    export_saved_model(ToyTask(), tmp_path / "Toy_1", jit=True)
    files = {path.name: path for path in write_serving_config(tmp_path / "Toy_1", tmp_path / "c")}
    batching = text_format.Parse(files["batching.config"].read_text(), BatchingParameters())
    sizes = list(batching.allowed_batch_sizes)
    assert sizes == [1, 2, 4, 8, 16, 32, 64]
    assert sizes[-1] == batching.max_batch_size.value
    for name in MANIFESTS:
        assert "--xla_cpu_compilation_enabled=true" in files[name].read_text()
    _, deployment, service = yaml.safe_load_all(files["kubernetes.yaml"].read_text())
    # Names in a cluster have no capitals and no underscores; the model's name stays.
    assert deployment["metadata"]["name"] == service["metadata"]["name"] == "toy-1"
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/v1/models/Toy_1"


def test_the_same_model_is_configured_anew_and_another_is_not(toy_model, written, tmp_path):
    folder = shutil.copytree(written["models.config"].parent, tmp_path / "serving")
    (folder / "notes.txt").write_text("mine")
    write_serving_config(toy_model.parent, folder)
    assert (folder / "notes.txt").read_text() == "mine"
    other = shutil.copytree(toy_model.parent, tmp_path / "other")
    refused("models.config belongs to another model", write_serving_config, other, folder)
    spaced = shutil.copytree(toy_model.parent, tmp_path / "two words")
    message = "letters, digits, .* Received: folder='.*two words'"
    refused(message, write_serving_config, spaced, tmp_path / "new")
    (tmp_path / "file").write_text("")
    new = tmp_path / "file" / "new"
    refused("The configuration cannot be written", write_serving_config, toy_model.parent, new)
