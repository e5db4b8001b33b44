"""The guide to several machines: commands that are understood, pods that find each other."""

import pathlib
import shlex

import pytest
import yaml

from keras_attn.cli import main
from keras_attn.cli.parser import parse
from keras_attn.training.workers.cluster import Cluster

GUIDES = pathlib.Path(__file__).resolve().parents[2] / "docs/pages/guides"
PAGE = GUIDES / "several_machines.md"


def commands():
    """The page's commands, without what sets variables before them."""
    blocks = PAGE.read_text().split("```")[1::2]
    for line in "\n".join(blocks).splitlines():
        if line.strip():
            words = shlex.split(line)
            yield words[words.index("keras-attn") + 1 :]


def manifest(name):
    return list(yaml.safe_load_all((GUIDES / "kubernetes" / name).read_text()))


def jobs(name):
    return [part for part in manifest(name) if part["kind"] == "Job"]


def command_of(job):
    (container,) = job["spec"]["template"]["spec"]["containers"]
    shell, flag, line = container["command"]
    assert (shell, flag) == ("sh", "-c")
    words = shlex.split(line.replace("$JOB_COMPLETION_INDEX", "3"))
    assert "exec" in words  # so that signals reach it
    return words[words.index("keras-attn") + 1 :], container


def test_the_page_has_commands_of_both_kinds():
    assert {command[0] for command in commands()} == {"train", "tune"}


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_the_command_is_understood(command):
    assert parse(command).command == command[0]


def test_manifests_are_linked():
    for path in (GUIDES / "kubernetes").iterdir():
        assert f"(kubernetes/{path.name})" in PAGE.read_text()


def test_the_pods_of_the_training_have_the_addresses_that_the_command_names():
    (job,) = jobs("train.yaml")
    (service,) = [part for part in manifest("train.yaml") if part["kind"] == "Service"]
    command, container = command_of(job)
    options = parse(command)
    cluster = Cluster(tuple(options.workers.split(",")), options.worker_index)
    name, pods = job["metadata"]["name"], job["spec"]["completions"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["parallelism"] == pods
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}
    (port,) = [entry["containerPort"] for entry in container["ports"]]
    domain = service["metadata"]["name"]
    assert cluster.workers == tuple(f"{name}-{index}.{domain}:{port}" for index in range(pods))
    assert options.supervise


def test_a_mistake_ends_the_training_job_and_a_lost_worker_does_not():
    (job,) = jobs("train.yaml")
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    _, container = command_of(job)
    assert rule == {
        "action": "FailJob",
        "onExitCodes": {"containerName": container["name"], "operator": "In", "values": [2]},
    }
    # Kubernetes takes the policy with no other one.
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert main(["train"]) == 2


def test_the_chief_and_workers_of_a_search_run_one_command_and_meet():
    chief, worker = jobs("tune.yaml")
    (service,) = [part for part in manifest("tune.yaml") if part["kind"] == "Service"]
    assert command_of(chief)[0] == command_of(worker)[0]
    assert parse(command_of(chief)[0]).resume
    assert service["spec"]["selector"] == {
        "batch.kubernetes.io/job-name": chief["metadata"]["name"]
    }
    variables = [
        {entry["name"]: entry["value"] for entry in command_of(job)[1]["env"]}
        for job in (chief, worker)
    ]
    assert variables[1]["KERASTUNER_ORACLE_IP"] == service["metadata"]["name"]
    assert {values["KERASTUNER_ORACLE_PORT"] for values in variables} == {
        str(entry["port"]) for entry in service["spec"]["ports"]
    }


@pytest.mark.parametrize("name", ["train.yaml", "tune.yaml"])
def test_only_the_pods_themselves_reach_the_ports(name):
    (policy,) = [part for part in manifest(name) if part["kind"] == "NetworkPolicy"]
    labels = policy["spec"]["podSelector"]["matchLabels"]
    for job in jobs(name):
        assert job["spec"]["template"]["metadata"]["labels"] == labels
        mounts = command_of(job)[1]["volumeMounts"]
        volumes = job["spec"]["template"]["spec"]["volumes"]
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in volumes}
    (rule,) = policy["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": labels}}]
