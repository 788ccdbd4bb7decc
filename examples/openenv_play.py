"""An OpenEnv server of Leduc poker on this machine, and a client that plays there by the mask."""

import random
import threading
import time

import uvicorn

from task_gym.openenv import TaskAction, TaskClient, app

application = app("game_gym:GameSpiel-v0", game="leduc_poker", rules=False)
server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=0, log_level="error"))
thread = threading.Thread(target=server.run, daemon=True)
thread.start()
while not server.started:
    time.sleep(0.05)
port = server.servers[0].sockets[0].getsockname()[1]

rng, scores, illegal = random.Random(0), [], 0
with TaskClient(base_url=f"http://127.0.0.1:{port}").sync() as client:
    for seed in range(100):
        result = client.reset(seed=seed)
        while not result.done:
            mask = result.observation.action_mask
            result = client.step(TaskAction(action=rng.choices(range(len(mask)), mask)[0]))
            illegal += result.observation.error is not None
        scores.append(result.observation.score)
    client.reset(seed=0)
    print(client.step(TaskAction(action=0)).observation.error)
print(f"{len(scores)} games, mean score {sum(scores) / len(scores):.3f}, {illegal} illegal actions")
server.should_exit = True
thread.join()
