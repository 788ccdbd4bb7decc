"""Ray Tune tries two learning rates of the trainer on Kuhn poker, each in a process of its own."""

import json
import tempfile
from pathlib import Path

import ray
from ray import tune


def trial(settings):
    from rich.console import Console

    from gamespiel.config import resolve
    from gamespiel.training.run import train

    overrides = {
        "env.task_id": "null", "env.game": "kuhn_poker", "ppo.learning_rate": str(settings["learning_rate"]),
        "ppo.batch_size": "64", "ppo.num_train_steps": "12", "run.eval_games": "0", "run.num_threads": "1",
        "run.output_dir": "run",
    }  # fmt: skip
    run = train(resolve("tiny", overrides=overrides.items()), console=Console(quiet=True))
    return {"share": json.loads((Path(run) / "summary.json").read_text())["after"]["share of best response"]}


if __name__ == "__main__":
    folder = tempfile.TemporaryDirectory()
    ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
    space = {"learning_rate": tune.grid_search([1e-5, 4e-3])}
    results = tune.Tuner(
        trial, param_space=space, run_config=tune.RunConfig(verbose=0, storage_path=folder.name),
        tune_config=tune.TuneConfig(metric="share", mode="max"),
    ).fit()  # fmt: skip
    for result in sorted(results, key=lambda result: result.config["learning_rate"]):
        print(f"learning rate {result.config['learning_rate']:g}: share {result.metrics['share']:.3f}")
    print(f"best: {results.get_best_result().config['learning_rate']:g}")
    ray.shutdown()
    folder.cleanup()
