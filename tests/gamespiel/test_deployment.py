"""A run's model for others: merged as the policy was, with a card of what the run was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from gamespiel.agents.runs import checkpoint
from gamespiel.assembly import make_policy
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, saved_config
from gamespiel.deployment.merging import collect_texts, greatest_change, plain_config
from gamespiel.deployment.publishing import find_licence, publish
from gamespiel.environments.making import make_one_env
from task_gym.errors import BackendError
from tests.consoles import quiet
from tests.gamespiel.runs import small, train_quietly
from tests.task_gym.test_files import files_of_at_most

pytestmark = [pytest.mark.trains, pytest.mark.sample]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = train_quietly(
        small(tmp_path_factory.mktemp("run") / "run", ppo__num_train_steps="2", run__eval_games="0")
    )
    evaluation = ["eval", "--checkpoint", str(folder), "--num_episodes", "2"]
    assert main(evaluation) == 0 and main([*evaluation, "--exact"]) == 0
    return folder


def test_the_merged_model_is_the_policys(run: Path, tmp_path: Path) -> None:
    """Read by transformers only, from the folder, as whoever gets it does."""
    publish(run, tmp_path / "merged", dtype="float32", console=quiet())
    told = json.loads((tmp_path / "merged" / "merged.json").read_text())
    assert (told["checkpoint"], told["dtype"], told["prompts"]) == ("step-000002", "float32", 16)
    assert 0 <= told["greatest_change"] < 1e-4 and told["learned"] > 0.01
    config = plain_config(saved_config(run), "float32")
    env = make_one_env(config.env)
    policy = make_policy(config, env)
    checkpoint.load_policy(policy, checkpoint.find(run))
    # Servers sample as in training: at temperature 1 from the whole distribution, to the end of turn.
    sampling = json.loads((tmp_path / "merged" / "generation_config.json").read_text())
    assert (sampling["do_sample"], sampling["temperature"]) == (True, 1.0)
    assert (sampling["top_k"], sampling["top_p"]) == (0, 1.0)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "merged")
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in sampling["eos_token_id"]
    for text in collect_texts(env, 3):
        tokens = policy.codec.encode_prompt(text)
        said = [{"role": "user", "content": text}]
        assert tokenizer.apply_chat_template(said, add_generation_prompt=True)["input_ids"] == list(tokens)
        with torch.no_grad():
            theirs = merged(input_ids=torch.tensor([tokens])).logits[0, -1].log_softmax(-1)
            ours = policy.model(input_ids=torch.tensor([tokens])).logits[0, -1].log_softmax(-1)
        assert torch.allclose(theirs, ours, atol=1e-4)
    for folder in (tmp_path / "merged", checkpoint.find(run)):  # safetensors writes for its own user alone
        assert len({path.stat().st_mode for path in folder.rglob("*") if path.is_file()}) == 1


def test_the_command(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model has a card of what the run was."""
    folder = tmp_path / "kuhn"
    assert main(["merge", f"{run}@2", "--output", str(folder)]) == 0
    assert "the log-probability of no likely token changed by more than" in capsys.readouterr().out
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    assert main(["merge", str(run), "--output", str(folder)]) == 2
    assert "is there already: name a new folder" in capsys.readouterr().err
    _, head, body = (folder / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(head) == {
        "license": "apache-2.0",
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["gamespiel", "merged", "ppo", "reinforcement-learning"],
    }
    data = json.loads((run / "eval-sampled-kuhn_poker-random.json").read_text())["sampled"]["all"]
    mean, low, high = data["score"]
    row = f"| score, {data['episodes']:,} episodes | {mean:.3f} ({low:.3f} to {high:.3f}) |"
    assert row in body and "kuhn_poker against random, sampled, step-000002" in body
    share = json.loads((run / "eval-exact-kuhn_poker-random.json").read_text())["exact"]["policy"]["share"]
    assert f"| share (exact) | {share:.3f} |" in body
    assert "| `ppo.num_train_steps` | 2 |" in body and str(tmp_path) not in body
    assert 'model = AutoModelForCausalLM.from_pretrained("kuhn")' in body
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_tolerances_and_a_full_disk_leave_nothing(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"--tolerance: 0.0 was given"):
        publish(run, tmp_path / "n", tolerance=0.0, console=quiet())
    with pytest.raises(BackendError, match=r"changes by .* nats, .* --tolerance 1e-09; nothing was wr"):
        publish(run, tmp_path / "n", tolerance=1e-9, console=quiet())
    with files_of_at_most(100_000), pytest.raises(BackendError, match=r"--output: '.*n' cannot be written: "):
        publish(run, tmp_path / "n", dtype="float32", console=quiet())
    assert not (tmp_path / "n").exists()


def test_changes_of_unlikely_tokens_do_not_count() -> None:
    before = torch.tensor([0.6, 0.395, 0.005]).log()
    after = torch.tensor([0.5, 0.499, 0.001]).log()
    # The second token changes most: log(0.499 / 0.395).
    assert greatest_change(before, after) == pytest.approx(0.2337, abs=1e-3)


def test_the_licence_is_the_bases_own(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert find_licence(str(tmp_path)) == {}
    card = (
        "---\nlanguage: en\nlicense: other\nlicense_name: 'own'\nlicense_link: LICENSE\n---\nlicense: mit\n"
    )
    (tmp_path / "README.md").write_text(card)
    licence = {"license": "other", "license_name": "own", "license_link": "LICENSE"}
    assert find_licence(str(tmp_path)) == licence
    assert find_licence("Qwen/Qwen3-4B") == {"license": "apache-2.0"}
