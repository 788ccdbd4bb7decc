"""Policies and learning: the package ``gamespiel.agents``, whose folder is at the top of the repository.

In the order in which data flows: ``starts`` chooses a step's episodes, ``rollout`` plays them in ``envs``,
``policy`` asks its sampler for decisions (room ``sampling``), ``buffer`` keeps them with their rewards,
``update`` asks the scorer (room ``scoring``) and minimises the terms of the loss (room ``learning``), and
``ppo`` is the loop around these. ``self_play`` plays every seat. Below them are ``engines``, which run the
forwards, ``models`` and ``tokens``. Above them, ``runs`` has checkpoints, logs and measures.

A wheel has the folder in ``gamespiel``, since the import name ``agents`` belongs to the distribution
openai-agents. In a checkout ``gamespiel.checkout`` finds it at the top.
"""

if __name__ == "agents":
    from task_gym.errors import ImportNameError

    raise ImportNameError(
        "'agents' was imported from GameSpiel's repository, where it is a folder and no package: "
        "import 'gamespiel.agents'; if you want the distribution openai-agents, run outside the repository"
    )
