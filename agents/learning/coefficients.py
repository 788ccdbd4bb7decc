"""The coefficients of a step's loss: the only way by which a weight reaches a term."""

from __future__ import annotations

from dataclasses import dataclass

from gamespiel.agents.hyperparameters import Hyperparameters


@dataclass(frozen=True)
class Coefficients:
    """The numbers of a step's loss: hyper-parameters, and what schedules and control made of them.

    Attributes:
        cliprange: The ratio is clipped to 1 ± this.
        vf_coef: Weight of the value loss.
        ent_coef: Weight of the entropy bonus in this step.
        kl_coef: Weight of the divergence from the reference in this step.
        magnet_coef: Weight of the divergence from the magnet in this step; 0 without one.
        legal_coef: Weight of the loss of probability on illegal answers.
        legal_target: Mass on legal answers that is enough.
        sampler_weight_cap: The most that the weight between sampler and scorer may be; None for no weight.
    """

    cliprange: float = Hyperparameters.cliprange
    vf_coef: float = Hyperparameters.vf_coef
    ent_coef: float = Hyperparameters.ent_coef
    kl_coef: float = Hyperparameters.init_kl_coef
    magnet_coef: float = 0.0
    legal_coef: float = Hyperparameters.legal_coef
    legal_target: float = Hyperparameters.legal_target
    sampler_weight_cap: float | None = Hyperparameters.sampler_weight_cap

    @classmethod
    def for_step(
        cls, numbers: Hyperparameters, *, ent_coef: float, kl_coef: float, magnet_coef: float
    ) -> Coefficients:
        """Returns the coefficients of a step, given those that change between steps."""
        return cls(
            cliprange=numbers.cliprange,
            vf_coef=numbers.vf_coef,
            ent_coef=ent_coef,
            kl_coef=kl_coef,
            magnet_coef=magnet_coef,
            legal_coef=numbers.legal_coef,
            legal_target=numbers.legal_target,
            sampler_weight_cap=numbers.sampler_weight_cap,
        )
