"""Policies and learning: the package ``gamespiel.agents``, whose folder is at the top of the repository.

A wheel has the folder in ``gamespiel``, since the import name ``agents`` belongs to the distribution
openai-agents. In a checkout ``gamespiel.checkout`` finds it at the top.
"""

if __name__ == "agents":
    from task_gym.errors import ImportNameError

    raise ImportNameError(
        "'agents' was imported from GameSpiel's repository, where it is a folder and no package: "
        "import 'gamespiel.agents'; if you want the distribution openai-agents, run outside the repository"
    )
