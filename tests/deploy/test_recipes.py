"""The recipes of docs/deploy hold what an agent needs: settings that exist, time to leave, one disruption at a time.

Rules of this module:

* What a platform's own checker says is asked where it is installed (systemd-analyze); schemas are not copied here:
  docs/how-to/deploy.md says with what they were checked.
* What a checker cannot know is tested here: grace times, identifiers, directories, budgets, ports.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scrapy.settings import Settings, default_settings

from scrapy_ubi.settings import SETTINGS, UbiSettings
from tests.deploy.recipes import DEPLOY, ROOT, UNIT, agent, commands, document, documents, settings, unit

RECIPES = [pytest.param(words, grace, id=name) for name, words, grace in commands()]
KNOWN = {row.setting for row in SETTINGS}
PORT = 9410
LIMIT = 60  # s for a checker


@pytest.mark.parametrize(("words", "grace"), RECIPES)
def test_settings_exist_and_can_be_read(words: list[str], grace: float) -> None:
    given = settings(words)
    assert given and set(given) <= KNOWN | vars(default_settings).keys()
    plain = {name: value for name, value in given.items() if name in KNOWN and "$" not in value and "%" not in value}
    UbiSettings.from_scrapy(Settings(plain), "wide")


@pytest.mark.parametrize(("words", "grace"), RECIPES)
def test_an_agent_has_the_time_to_leave(words: list[str], grace: float) -> None:
    given = settings(words)
    assert float(given["DOWNLOAD_TIMEOUT"]) + float(given["UBI_LEAVE_TIMEOUT"]) < grace


@pytest.mark.parametrize(("words", "grace"), RECIPES)
def test_a_start_after_the_end_begins_no_new_crawl_unless_there_is_no_end(words: list[str], grace: float) -> None:
    given = settings(words)
    assert (given.get("UBI_AGAIN") == "never") != ("UBI_SERVE" in given)


def test_the_unit_starts_again_what_crashed_and_nothing_else() -> None:
    found = unit()
    assert found["Restart"] == "on-failure" and "SuccessExitStatus" not in found
    assert found["KillSignal"] == "SIGTERM" and found["KillMode"] == "mixed" and found["Type"] == "exec"
    assert float(found["RestartSec"]) * float(found["StartLimitBurst"]) < float(found["StartLimitIntervalSec"])
    given = settings(found["ExecStart"].split())
    assert given["UBI_DIR"] == f"%S/{found['StateDirectory']}" and given["UBI_AGENT_ID"] == "%H-%i"
    named = set(re.findall(r"^(\w+)=", (DEPLOY / "systemd" / "crawl.env").read_text(), re.MULTILINE))
    assert set(re.findall(r"\$\{(\w+)\}", found["ExecStart"])) <= named


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="apt-get install systemd brings systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    program = unit()["ExecStart"].split()[0]
    copy.write_text(UNIT.read_text().replace(program, "/bin/true"))  # it must exist
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if "Failed to initialize" in done.stderr:
        pytest.skip(done.stderr.strip())
    # It says what it thinks of all units that it loads; ours is named in each line that is about it.
    assert [line for line in done.stderr.splitlines() if "scrapy-ubi" in line] == []


def test_containers_of_compose_share_a_volume_and_take_directories_of_their_own() -> None:
    (compose,) = documents("compose/compose.yaml")
    service = compose["services"]["agent"]
    assert not {"UBI_DIR", "UBI_AGENT_ID"} & settings(service["command"]).keys(), "the first free directory is taken"
    (volume,) = service["volumes"]
    name, _, place = volume.partition(":")
    dockerfile = (DEPLOY / "compose" / "Dockerfile").read_text()
    assert name in compose["volumes"] and place == "/srv/crawler/.ubi" and "WORKDIR /srv/crawler\n" in dockerfile
    assert f"VOLUME {place}\n" in dockerfile and 'ENTRYPOINT ["scrapy"]' in dockerfile, "no shell before the agent"
    assert service["restart"].startswith("on-failure") and service["init"] is True
    assert service["stop_signal"] == "SIGTERM" and "STOPSIGNAL SIGTERM" in dockerfile
    assert f":{PORT}/live" in " ".join(service["healthcheck"]["test"])


@pytest.mark.parametrize(("path", "kind"), [("batch.yaml", "Job"), ("service.yaml", "StatefulSet")])
def test_pods_are_asked_whether_they_live_and_are_ready(path: str, kind: str) -> None:
    container = agent(document(f"kubernetes/{path}", kind))
    (port,) = container["ports"]
    assert port["containerPort"] == PORT
    for probe, where in (("livenessProbe", "/live"), ("readinessProbe", "/ready")):
        assert container[probe]["httpGet"] == {"path": where, "port": port["name"]}
    text = " ".join([*container["command"], *container.get("args", [])])
    assert f"UBI_METRICS=0.0.0.0:{PORT}" in text
    named = {variable["name"] for variable in container["env"]}
    assert set(re.findall(r"\$\(([A-Z_]+)\)|\$\{?([A-Z][A-Z_]+)", text)) <= {
        pair for name in named for pair in ((name, ""), ("", name))
    }


def test_the_batch_survives_one_disruption_at_a_time() -> None:
    job = document("kubernetes/batch.yaml", "Job")
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    assert spec["template"]["spec"]["restartPolicy"] == "OnFailure", "the disk of a container that crashes is kept"
    copies = int(settings(agent(job)["command"][2].split())["UBI_REPLICATION"])
    budget = document("kubernetes/batch.yaml", "PodDisruptionBudget")
    assert copies >= 1 and budget["spec"]["minAvailable"] == spec["completions"] - copies
    assert budget["spec"]["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_the_service_is_its_pods_names_and_volumes() -> None:
    spec = document("kubernetes/service.yaml", "StatefulSet")["spec"]
    container = agent({"spec": spec})
    given = settings(container["args"])
    assert given["UBI_AGENT_ID"] == "$(POD_NAME)" and spec["podManagementPolicy"] == "Parallel"
    (mount,), (claim,) = container["volumeMounts"], spec["volumeClaimTemplates"]
    assert mount["name"] == claim["metadata"]["name"] and given["UBI_DIR"].startswith(f"{mount['mountPath']}/")
    budget = document("kubernetes/service.yaml", "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == int(given["UBI_REPLICATION"])
    labels = spec["template"]["metadata"]["labels"]
    service = document("kubernetes/service.yaml", "Service")
    assert service["metadata"]["name"] == spec["serviceName"] and service["spec"]["selector"] == labels
    assert spec["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"] == labels


def test_the_playbook_takes_one_machine_at_a_time_and_the_unit_of_systemd() -> None:
    (play,) = documents("ansible/playbook.yaml")[0]
    assert play["serial"] == 1
    texts = (DEPLOY / "ansible" / "playbook.yaml").read_text()
    assert "ansible.builtin" in texts and "community." not in texts, "ansible-core alone"
    (copied,) = re.findall(r"src: (\.\./systemd/\S+)", texts)
    assert (DEPLOY / "ansible" / copied).resolve() == UNIT
    environment = (DEPLOY / "systemd" / "crawl.env").read_text()
    assert set(re.findall(r"^ +([A-Z_]+)=", texts, re.MULTILINE)) == set(re.findall(r"^([A-Z_]+)=", environment, re.M))
    inventory = configparser.ConfigParser(allow_no_value=True, delimiters=("=",))
    inventory.read(DEPLOY / "ansible" / "inventory.ini")
    assert (DEPLOY / "ansible" / inventory["crawlers:vars"]["project"]).is_dir()


def test_scrapyd_gives_jobs_no_directory_of_their_own() -> None:
    read = configparser.ConfigParser()
    read.read(DEPLOY / "scrapyd" / "scrapyd.conf")
    assert read["scrapyd"]["jobs_dir"] == "" and read["scrapyd"]["bind_address"] == "127.0.0.1"


def test_every_recipe_is_in_a_how_to() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "how-to").glob("*.md"))
    for file in DEPLOY.rglob("*"):
        assert file.is_dir() or f"](../deploy/{file.relative_to(DEPLOY)})" in pages, file
