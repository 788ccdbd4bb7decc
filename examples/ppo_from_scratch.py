"""PPO for a language model that plays a game, in one file: exact policy, critic, LoRA, GAE, evaluation.

Nothing of the trainer is used: only gymnasium, torch, transformers, peft and the environments. Read it from
top to bottom. The model never samples a token that leads to no legal action, and its probability of an action
is exact, so the ratio of PPO is one of actions and not of tokens.

    python examples/ppo_from_scratch.py              # the embedded model, Leduc poker
    python examples/ppo_from_scratch.py --model Qwen/Qwen2.5-0.5B-Instruct --games 64 --learning-rate 2e-5

It runs on the CPU, in float32.
"""

import argparse
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

import game_gym.exact
import game_gym.opponents  # registers the games and their opponents

TINY = Path(__file__).parents[1] / "agents" / "tiny"
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
TOKENS = 40_000  # that the model reads at once

# -- the policy --------------------------------------------------------------------------------------------


class Policy(nn.Module):
    """A language model as an exact distribution over legal actions, with a critic.

    A question is a text and its legal actions, ``(text, (1, 2))``. An action is answered by its number, whose
    tokens end with the token that ends a turn. Together the answers are a tree; only where it branches does
    the model choose, and there its softmax is over the tokens that go on.
    """

    def __init__(self, name: str, rank: int = 16) -> None:
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        base = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
        self.model = get_peft_model(
            base, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=LINEAR, task_type="CAUSAL_LM")
        )
        self.critic = nn.Linear(base.config.get_text_config().hidden_size, 1)
        nn.init.zeros_(self.critic.weight), nn.init.zeros_(self.critic.bias)
        self._prompts: dict[str, list[int]] = {}
        self._branches: dict[tuple[int, ...], list[tuple[list[int], list[int], list[list[int]]]]] = {}

    def trainable_parameters(self) -> list[nn.Parameter]:
        return [weight for weight in self.parameters() if weight.requires_grad]

    def encode(self, text: str) -> list[int]:
        """Returns the tokens of a chat in which the text is the user's, up to the assistant's turn."""
        if text not in self._prompts:
            chat = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False,
                enable_thinking=False,
            )  # fmt: skip
            self._prompts[text] = self.tokenizer(chat, add_special_tokens=False)["input_ids"]
        return self._prompts[text]

    def branches(self, legal: tuple[int, ...]) -> list[tuple[list[int], list[int], list[list[int]]]]:
        """Returns where the answers part: the prefix, the tokens after it, and which go on with each."""
        if legal not in self._branches:
            numbers = self.tokenizer([str(action) for action in legal], add_special_tokens=False)["input_ids"]
            answers = [[*number, self.tokenizer.eos_token_id] for number in numbers]
            branches = []
            for prefix in sorted({tuple(answer[:cut]) for answer in answers for cut in range(len(answer))}):
                going: dict[int, list[int]] = {}
                for place, answer in enumerate(answers):
                    if tuple(answer[: len(prefix)]) == prefix and len(answer) > len(prefix):
                        going.setdefault(answer[len(prefix)], []).append(place)
                if len(going) > 1:
                    branches.append((list(prefix), list(going), list(going.values())))
            self._branches[legal] = branches or [([], answers[0][:1], [[0]])]  # the critic reads the prompt
        return self._branches[legal]

    def forward(self, questions: list[tuple[str, tuple[int, ...]]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns log-probabilities of legal actions, (b, most of them), -inf beyond, and values (b,)."""
        rows, firsts, question_of = [], [], []
        for place, (text, legal) in enumerate(questions):
            firsts.append(len(rows))
            rows += [self.encode(text) + prefix for prefix, _, _ in self.branches(legal)]
            question_of += [place] * (len(rows) - firsts[-1])
        prompts = [len(self.encode(questions[place][0])) for place in question_of]
        last, after_prompt = self._read(rows, prompts)
        values = self.critic(after_prompt[firsts]).squeeze(-1)
        head = self.model.get_base_model().get_output_embeddings()
        logits = head(last).float()

        # One softmax per branch, and the sum over those on the way to an action.
        index, tokens, goals, width = [], [], [], max(len(legal) for _, legal in questions)
        row, blocked = 0, torch.full_like(logits, -torch.inf)
        for place, (_, legal) in enumerate(questions):
            for _, following, going in self.branches(legal):
                blocked[row, following] = 0.0
                for token, places in zip(following, going, strict=True):
                    index += [row] * len(places)
                    tokens += [token] * len(places)
                    goals += [place * width + goal for goal in places]
                row += 1
        chosen = (logits + blocked).log_softmax(dim=-1)[index, tokens]
        sums = torch.zeros(len(questions) * width).index_add(0, torch.tensor(goals), chosen)
        beyond = torch.tensor([[at >= len(legal) for at in range(width)] for _, legal in questions])
        return sums.view(len(questions), width).masked_fill(beyond, -torch.inf), values

    def _read(self, rows: list[list[int]], prompts: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the hidden states at each row's last token and at its prompt's, both (rows, hidden)."""
        last, after_prompt = [], []
        most = max(map(len, rows))
        for start in range(0, len(rows), max(1, TOKENS // most)):
            part = rows[start : start + max(1, TOKENS // most)]
            tokens, mask = torch.zeros(2, len(part), most, dtype=torch.long)
            for place, row in enumerate(part):
                tokens[place, : len(row)] = torch.tensor(row)
                mask[place, : len(row)] = 1
            hidden = (
                self.model.get_base_model().model(input_ids=tokens, attention_mask=mask).last_hidden_state
            )
            every = torch.arange(len(part))
            last.append(hidden[every, torch.tensor([len(row) - 1 for row in part])])
            after_prompt.append(hidden[every, torch.tensor(prompts[start : start + len(part)]) - 1])
        return torch.cat(last), torch.cat(after_prompt)


def ask(policy: Policy, questions: list) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns what the policy says to questions, each of which is read once, however often it is there."""
    places = {question: place for place, question in enumerate(dict.fromkeys(questions))}
    log_probs, values = policy(list(places))
    index = [places[question] for question in questions]
    return log_probs[index], values[index]


# -- play --------------------------------------------------------------------------------------------------


def play(policy: Policy, envs: gym.vector.VectorEnv, seed: int, noise: torch.Generator) -> list[dict]:
    """Plays one game in each environment to its end; returns the turns of each, one after the other."""
    texts, infos = envs.reset(seed=seed)
    games: list[list[dict]] = [[] for _ in texts]
    over = np.zeros(envs.num_envs, dtype=bool)
    while not over.all():
        waiting = np.flatnonzero(~over)
        masks = infos["action_mask"]
        questions = [(texts[game], tuple(np.flatnonzero(masks[game]).tolist())) for game in waiting]
        with torch.no_grad():
            log_probs, values = ask(policy, questions)
        chosen = torch.multinomial(log_probs.exp(), 1, generator=noise).squeeze(1)
        actions = np.zeros(envs.num_envs, dtype=np.int64)
        for row, game in enumerate(waiting):
            place = int(chosen[row])
            actions[game] = questions[row][1][place]
            games[game].append({
                "question": questions[row], "place": place, "log_prob": float(log_probs[row, place]),
                "value": float(values[row]), "reward": 0.0,
            })  # fmt: skip
        texts, rewards, terminated, truncated, infos = envs.step(actions)
        for game in waiting:
            games[game][-1]["reward"] = float(rewards[game])
        over |= terminated | truncated  # a game that has ended begins anew, and nobody listens
    return [turn for game in games for turn in estimate_advantages(game)]


def estimate_advantages(turns: list[dict], decay: float = 0.8) -> list[dict]:
    """Adds advantages and returns to a game's turns (Schulman et al. 2016), without discounting."""
    advantage = following = 0.0
    for turn in reversed(turns):
        advantage = turn["reward"] + following - turn["value"] + decay * advantage
        turn["advantage"], turn["return"] = advantage, advantage + turn["value"]
        following = turn["value"]
    return turns


# -- learn -------------------------------------------------------------------------------------------------


def ppo_loss(policy: Policy, turns: list[dict], entropy_coef: float, clip: float = 0.2) -> torch.Tensor:
    """Returns the loss of turns whose advantages are normalised: clipped ratio, critic, entropy."""
    log_probs, values = ask(policy, [turn["question"] for turn in turns])
    names = ("place", "log_prob", "advantage", "return")
    places, old, advantages, returns = (torch.tensor([turn[name] for turn in turns]) for name in names)
    ratio = (log_probs.gather(1, places[:, None]).squeeze(1) - old).exp()
    gains = torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    legal = log_probs.masked_fill(log_probs == -torch.inf, 0.0)
    entropy = -(log_probs.exp() * legal).sum(dim=1)
    error = (values - returns).square()
    return -gains.mean() + 5.0 * error.mean() - entropy_coef * entropy.mean()


def learn(policy: Policy, optimizer: torch.optim.Optimizer, turns: list[dict], entropy_coef: float) -> None:
    """Makes four passes over the turns, in three minibatches of questions."""
    gains = torch.tensor([turn["advantage"] for turn in turns])
    gains = (gains - gains.mean()) / (gains.std().nan_to_num() + 1e-8)
    for turn, gain in zip(turns, gains.tolist(), strict=True):
        turn["advantage"] = gain
    by_question: dict[object, list[dict]] = {}
    for turn in turns:
        by_question.setdefault(turn["question"], []).append(turn)
    groups = list(by_question.values())
    for _ in range(4):
        for part in torch.randperm(len(groups)).tensor_split(min(3, len(groups))):
            optimizer.zero_grad()
            ppo_loss(policy, [turn for place in part for turn in groups[place]], entropy_coef).backward()
            nn.utils.clip_grad_norm_(policy.trainable_parameters(), 1.0)
            optimizer.step()


# -- measure -----------------------------------------------------------------------------------------------


def measure(policy: Policy, game: str) -> float:
    """Returns the share of best response against random, exactly: every position of the game is asked for."""

    def probabilities(texts, legal):
        questions = [(text, tuple(actions)) for text, actions in zip(texts, legal, strict=True)]
        with torch.no_grad():
            matrix = ask(policy, questions)[0].double().exp().numpy()
        rows = [row[: len(actions)] for row, (_, actions) in zip(matrix, questions, strict=True)]
        return [row / row.sum() for row in rows]

    variant = game_gym.exact.find_variant(game=game)
    return game_gym.exact.evaluate(variant, probabilities, rules=False).share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default=str(TINY), help="a folder, or a name of the hub")
    parser.add_argument("--game", default="leduc_poker", help="a small game of OpenSpiel")
    parser.add_argument("--steps", type=int, default=80, help="steps of training")
    parser.add_argument("--games", type=int, default=1024, help="games that a step plays")
    parser.add_argument("--learning-rate", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    noise = torch.Generator().manual_seed(options.seed)
    policy = Policy(options.model)
    optimizer = torch.optim.Adam(policy.trainable_parameters(), lr=options.learning_rate, betas=(0.9, 0.95))
    envs = gym.make_vec("GameSpiel-v0", options.games, game=options.game, opponent="random", rules=False)
    started, decisions = time.perf_counter(), 0
    for step in range(options.steps):
        left = 1 - step / options.steps
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * left
        turns = play(policy, envs, options.seed + 1_000_000 * step, noise)
        decisions += len(turns)
        learn(policy, optimizer, turns, 0.03 * left)
        score = sum(turn["reward"] for turn in turns) / options.games
        print(f"step {step + 1}/{options.steps}  score {score:.3f}  {decisions:,} decisions", flush=True)
    seconds, share = time.perf_counter() - started, measure(policy, options.game)
    print(f"{share:.1%} of best response after {decisions:,} decisions in {seconds:.0f} s")


if __name__ == "__main__":
    main()
