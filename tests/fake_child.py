"""The program under the fake profiler: says that it launched every case but those that cannot run.

fake_child.py JOB.json DONE.jsonl
"""

import json
import sys
from pathlib import Path

from lanewise.measure.worker import load

if __name__ == "__main__":
    job = json.loads(Path(sys.argv[1]).read_text())
    experiments = load(job["source"])()
    lines = []
    for number, table, i in job["places"]:
        case = getattr(experiments[number], table)[i]
        fault = case.name == "raise_an_error"
        said = {"error": "ValueError: bad kernel"} if fault else {"kernel": case.name}
        lines.append(json.dumps({"place": [number, table, i], **said}) + "\n")
    Path(sys.argv[2]).write_text("".join(lines))
