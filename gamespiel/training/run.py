"""``gamespiel train``: a run, from its configuration to the table of measures before and after."""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)
from gamespiel.report.console import make_console

# isort: split
import dataclasses
import logging
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from stable_baselines3.common.logger import KVWriter, Logger

from gamespiel import runs
from gamespiel.agents.launch import read_launch
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.models import memory
from gamespiel.agents.models.weights import ModelError, describe_model
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.ranks import Ranks
from gamespiel.agents.runs import catalog, checkpoint
from gamespiel.agents.runs.loggers import JSONLWriter, find_gaps, truncate_after
from gamespiel.assembly import connect_sampler, make_algorithm
from gamespiel.config import SAVED_NAME, Config, notices, save, saved_config
from gamespiel.environments.held_out import explain_not_held_out
from gamespiel.environments.making import evaluation_config
from gamespiel.environments.tree_values import find_trees
from gamespiel.kinds import kind_of
from gamespiel.overview.plots import plot_run
from gamespiel.report.results import write_json
from gamespiel.report.tables import PAIRED_NOTE, SUMMARY_NOTE, make_pairs_table, summary_table
from gamespiel.report.text import print_plain
from gamespiel.runs import CURVE, METRICS, SHARE, SUMMARY, require_room
from gamespiel.stopping import Stop, Stopped, asking, interrupting
from gamespiel.training.callbacks import BetweenSteps, DisplayWriter, save_first
from gamespiel.training.dashboard import Dashboard
from gamespiel.training.launching import divide_threads, joining, keep_threads, load_checkpoint, load_origin
from gamespiel.training.measures import Measures, measure_before, measure_result, pair_scores
from gamespiel.training.readiness import check_resumed, prepare
from gamespiel.training.reporting import check_reports, reporting
from gamespiel.usage import command
from task_gym.remote import loop

HALVINGS = 5
"""Halvings of the learning rate for one step; a run that diverges there once more gives up."""


def train(config: Config, resume: str | Path | None = None, console: Console | None = None) -> Path:
    """Trains a new run, or resumes ``resume`` (a run, or its newest checkpoint); returns the run's folder.

    The folder has ``config.yaml`` (resolved), ``metrics.jsonl`` (a row per step), ``checkpoints/step-N``,
    ``learning_curve.png``, and, from before and after, ``summary.json`` and ``games.jsonl``. The first
    checkpoint is of step 0, so any run can be resumed. No other process can train in the folder meanwhile.
    Under ``torchrun`` all ranks train one policy: the first one's configuration counts, and it alone writes
    and shows. The first Ctrl-C stops at the last complete step with a checkpoint; a second one stops at once.
    SIGTERM and SIGHUP stop as the first Ctrl-C does, and at any rank all of them. After SIGTERM, a step that
    does not end within ``run.grace_seconds`` is given up, and the last checkpoint is the one before. A server
    that is waited for at a signal is waited for no longer.

    With ``config.run.init_from``, a new run starts with the weights of another run's checkpoint.

    Raises:
        TaskGymError: this version cannot run the configuration, a key changed that a resumed run keeps, a
            checkpoint does not fit, the folder is in use, or the disk is full.
        RanksError: another rank failed or was lost, or ranks differ in what they have learned.
        Stopped: Ctrl-C, SIGTERM or SIGHUP stopped the run; it is a KeyboardInterrupt.
    """
    launch = read_launch()
    console = (console or make_console()) if launch.leads else Console(quiet=True)
    config = prepare(config)
    check_reports(config)
    divide_threads(config, launch)
    unsolved = ""
    if config.run.exact_every != 0:  # the answer can take long, so it is asked for once
        env, asked = evaluation_config(config).env, bool(config.run.exact_every)
        unsolved = kind_of(config.env).explain_unsolved(env, asked=asked)
    with interrupting(), ExitStack() as stack:
        ranks = stack.enter_context(joining(config, launch))
        config, resume = ranks.lead(lambda: (config, resume))
        if resume is None:
            folder, config, model = _begin_run(config, console, stack, ranks)
        else:
            folder, config, model = _go_on(config, resume, console, stack, ranks)
        notes = notices(config)
        if why := explain_not_held_out(config):
            notes.append(f"run.eval_steps: {why}.")
        if unsolved:
            if config.run.exact_every:
                notes.append(f"run.exact_every = {config.run.exact_every} has no effect: {unsolved}.")
            config = _change_run(config, exact_every=0)
        if config.ppo.advantages == "auto" and model.find_values is None:
            notes.append(f"ppo.advantages = auto takes gae: {find_trees(config)}.")
            if config.ppo.all_actions:
                notes.append("ppo.all_actions = true has no effect without ppo.advantages: exact.")
        for note in notes:
            print_plain(console, note)
        print_plain(console, f"{_describe_model(model)}\nrun folder: {folder}")
        stack.enter_context(require_room(folder))
        resumed = resume is not None
        before = ranks.lead(lambda: measure_before(config, model, folder, console, resumed=resumed))
        if SHARE in before.rows and config.run.exact_every == 0:
            config = _change_run(config, exact_every=None)  # a resumed run: measured after as it was before
        stop = _learn_steps(config, model, folder, before, console)
        if ranks.leads:
            _end_run(config, model, folder, before, stop, console)
        ranks.agree(False)  # the launcher ends all ranks when one has ended
        if stop.number is not None:
            raise Stopped(stop.number)
    return folder


def _begin_run(
    config: Config, console: Console, stack: ExitStack, ranks: Ranks
) -> tuple[Path, Config, LLMPPO]:
    """Returns a new run's folder, locked until ``stack`` closes, its configuration and its model.

    The folder is made last, so a wrong game or model leaves no empty folder.
    """
    origin = None if config.run.init_from is None else Path(config.run.init_from)
    if ranks.leads:
        runs.check_free(config)
        if origin is not None:
            checkpoint.find(origin)  # before the model is loaded, which can take minutes
    model = _load_model(config, console, ranks)
    if origin is not None:
        start = load_origin(model, origin)
        config = _change_run(config, init_from=str(start))
        print_plain(console, f"starting from the weights of {start}")

    def make_folder() -> tuple[Path, Config]:
        folder = stack.enter_context(runs.create(config))
        if config.run.output_dir is None:
            runs.note_folder(folder, ranks.launch)
        return folder, save_first(config, model, folder)

    folder, config = ranks.lead(make_folder)
    return folder, config, model


def _go_on(
    config: Config, resume: str | Path, console: Console, stack: ExitStack, ranks: Ranks
) -> tuple[Path, Config, LLMPPO]:
    """Returns a resumed run's folder, locked until ``stack`` closes, its configuration and its model."""

    def take_folder() -> tuple[Path, Path, bool]:
        start = checkpoint.find(resume)
        folder, goes_back = runs.folder_of(start, config), catalog.names_step(resume)
        check_resumed(config, saved_config(folder), catalog.step_of(start))
        stack.enter_context(runs.own(folder))
        if not goes_back:
            checkpoint.require_newest(start)
        if changed := keep_threads(config, ranks, start):
            print_plain(console, changed)
        return start, folder, goes_back

    start, folder, goes_back = ranks.lead(take_folder)
    try:
        model = _load_model(config, console, ranks)
    except ModelError as error:
        raise ModelError(
            f"{error}. If the run's model is elsewhere now, give its place: --model.model_name NAME"
        ) from error
    load_checkpoint(model, start)
    config = _change_run(config, output_dir=str(folder))
    if ranks.leads:
        _rewind_folder(config, model, folder, console, goes_back=goes_back)
    return folder, config, model


def _rewind_folder(config: Config, model: LLMPPO, folder: Path, console: Console, *, goes_back: bool) -> None:
    """Makes a resumed run's folder what it was at the checkpoint, and says what it lacks."""
    if goes_back and (aside := catalog.leave_later(folder, model.step, [folder / METRICS])) is not None:
        print_plain(
            console, f"going back to step {model.step}: the later checkpoints and metrics are in {aside}"
        )
    truncate_after(folder / METRICS, model.step)
    if gaps := find_gaps(folder / METRICS, model.step):
        listed = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in gaps)
        print_plain(console, f"{folder / METRICS} lacks the steps {listed}")
    save(config, folder / SAVED_NAME)


def _change_run(config: Config, **values: Any) -> Config:
    return dataclasses.replace(config, run=dataclasses.replace(config.run, **values))


def _load_model(config: Config, console: Console, ranks: Ranks) -> LLMPPO:
    print_plain(console, f"loading {describe_model(config.model.model_name)}")
    model = make_algorithm(config, ranks=ranks)
    connect_sampler(config, model.policy, ranks)
    return model


def _learn_steps(config: Config, model: LLMPPO, folder: Path, before: Measures, console: Console) -> Stop:
    """Trains to the last step, or until a signal asks any rank to stop; returns whether one has.

    After a divergence the run goes on from its last checkpoint with half the learning rate.

    Raises:
        DivergedError: ``HALVINGS`` halvings did not get it past a step.
    """
    steps, stop, ranks = config.ppo.num_train_steps, Stop(config.run.grace_seconds), model.ranks
    with (
        ExitStack() as stack,
        Dashboard(steps, done=model.step, console=console) as dashboard,
        _logs_to(dashboard.message, ranks),
        asking(stop),
        memory.setting_aside(),
        loop.abandoning(lambda: stop.asked),
    ):
        between = BetweenSteps(folder, config, stop, before.rows, dashboard)
        model.on_progress, ranks.while_waiting = between.show_activity, between.notice_stop
        writers: list[KVWriter] = []
        if ranks.leads:
            writers = [JSONLWriter(folder / METRICS), DisplayWriter(dashboard, model, between)]
            writers += stack.enter_context(reporting(config, folder, model, dashboard.message))
        diverged: DivergedError | None = None
        while True:
            if diverged is not None:
                dashboard.message(_back_off(model, folder, diverged))
            model.set_logger(Logger(str(folder), writers))
            try:
                model.learn(callback=between)
                break
            except DivergedError as error:
                diverged = error
            finally:
                model.logger.close()
        for number in filter(None, ranks.gather(stop.number)):
            stop.ask(number)
        if stop.asked:
            dashboard.message(f"stopped after step {model.step} of {steps}")
        elif between.ended:
            best, metric = between.best, config.run.metric_for_best_model
            dashboard.message(
                f"ended after step {model.step} of {steps}: no evaluation was better than that after step "
                f"{best.step}, of {metric} {best.value:.3f}, in {best.since} (run.early_stopping_patience)"
            )
    return stop


def _back_off(model: LLMPPO, folder: Path, error: DivergedError) -> str:
    """Takes the model and the folder back to a checkpoint, with half the learning rate; returns what to say.

    A kill at any moment leaves a run that can be resumed: either as it is now, or it diverges again first.

    Raises:
        DivergedError: the run has been here too often, or its weights were useless from the start.
    """
    backoff, ranks = model.backoff.after(error.step), model.ranks
    if backoff.halvings > HALVINGS:
        raise DivergedError(
            f"{error}, and so it was after each of {HALVINGS} halvings of the learning rate; lower "
            "ppo.learning_rate or ppo.max_grad_norm, or try another model.dtype",
            error.step,
        ) from error

    def find_earlier() -> Path:
        earlier = checkpoint.checkpoints(folder)
        if error.in_play:  # so it would be again with the same weights
            earlier = [older for older in earlier if checkpoint.step_of(older) < error.step]
        if not earlier:
            raise DivergedError(
                f"{error}, and there is no checkpoint of other weights; try another model.dtype, or keep "
                "more checkpoints (run.keep_checkpoints)",
                error.step,
            ) from error
        return earlier[-1]

    earlier = ranks.lead(find_earlier)
    load_checkpoint(model, earlier)
    model.backoff = backoff
    if ranks.leads:
        checkpoint.save_state(model, earlier)
        checkpoint.remove_after(folder, model.step)
        truncate_after(folder / METRICS, model.step)
    return (
        f"{error}: back to the checkpoint after step {model.step}, with {backoff.rate_factor:g} of the "
        "learning rate"
    )


def _describe_model(model: LLMPPO) -> str:
    policy = model.policy
    _, total = policy.model.get_nb_trainable_parameters()  # which knows how many there are in a byte
    trained = sum(p.numel() for p in policy.trainable_parameters())
    return (
        f"{policy.model_settings.model_name}: {total:,} parameters, {trained:,} of them trained, "
        f"on {policy.engine.device}, {torch.get_num_threads()} threads"
        f"{f' in each of {model.ranks.size} ranks' if model.ranks.size > 1 else ''}"
    )


def _end_run(
    config: Config, model: LLMPPO, folder: Path, before: Measures, stop: Stop, console: Console
) -> None:
    """Measures what a run that was not stopped has come to, draws its curves, and says how to go on."""
    runs.forget_folder(model.ranks.launch)
    rows = before.rows
    if stop.number is None:  # or it would be a long evaluation, for which nobody may have the time
        measures = measure_result(config, model, console, "after training", folder)
        rows, pairs = measures.rows, pair_scores(before.scores, measures.scores)
        paired = {"paired": {name: row._asdict() for name, row in pairs.items()}} if pairs else {}
        counts = {"step": model.step, "decisions": model.num_timesteps}
        write_json({**counts, **before.to_dict(), "after": rows, **paired}, folder / SUMMARY)
        if before.rows or rows:
            console.print(summary_table(before.rows, rows))
        if "illegal rate" in rows:
            console.print(SUMMARY_NOTE)
        if pairs:
            console.print(make_pairs_table(pairs))
            console.print(PAIRED_NOTE)
        console.print(f"{model.num_timesteps:,} decisions in {model.seconds:.0f} s")
    if (folder / METRICS).stat().st_size:
        plot_run(folder, folder / CURVE)
    # How to evaluate the run, and how to go on with it: each can be pasted to a shell.
    run, steps = shlex.quote(str(folder)), config.ppo.num_train_steps
    more = "" if model.step < steps else f" --ppo.num_train_steps {2 * steps}"
    other = ", or --opponent mcts:100" if kind_of(config.env).has_opponents else ""
    print_plain(
        console,
        f"{command('eval')} --checkpoint {run}{' --exact' if SHARE in rows else ''}  # evaluate{other}\n"
        f"{command('train')} --resume {run}{more}  # go on; play it: gamespiel.load_policy({str(folder)!r})",
    )


@contextmanager
def _logs_to(show: Callable[[str], None], ranks: Ranks) -> Iterator[None]:
    """Shows warnings, such as of a lost worker, and the changes of a curriculum's stage.

    Of several ranks each shows its warnings: all but the first show nothing else.
    """

    def warn(text: str) -> None:
        print(f"gamespiel (rank {ranks.rank}): {text}", file=sys.stderr)

    stages = logging.getLogger("task_gym.samplers.stages")
    with ExitStack() as stack:
        stack.callback(stages.setLevel, stages.level)
        stages.setLevel(logging.INFO)
        for name in (stages.name, "gamespiel.agents", "task_gym.workers"):
            handler = logging.Handler(logging.INFO if name == stages.name else logging.WARNING)
            tell = show if ranks.leads or name == stages.name else warn
            handler.emit = lambda record, tell=tell: tell(record.getMessage())  # type: ignore[method-assign, misc]
            logging.getLogger(name).addHandler(handler)
            stack.callback(logging.getLogger(name).removeHandler, handler)
        yield
