"""verifiers' evaluator plays Kuhn poker with a model behind an address: the first legal move."""

import asyncio
import json
import re
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig


class Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][-1]["content"]
        message = {"role": "assistant", "content": re.findall(r"^  (\d+) -> ", asked, re.M)[0]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "first", "choices": [choice]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(whole).encode())

    def log_message(self, *arguments: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
tasks = {"id": "gamespiel-games", "size": 20, "arguments": {"game": "kuhn_poker", "rules": False}}
client = {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key_var": "NONE"}
with tempfile.TemporaryDirectory() as folder:
    settings = {"env": {"taskset": tasks}, "client": client, "push": False, "output_dir": folder}
    episodes = asyncio.run(run_eval(EvalConfig(rich=None, **settings)))
traces = [episode.traces[0] for episode in episodes]
print(f"{len(traces)} games, mean reward {sum(trace.reward for trace in traces) / len(traces):.3f}")
print(f"{sum(trace.metrics['illegal'] for trace in traces):.0f} illegal actions")
server.shutdown()
