"""A tracking store in memory that behaves as MLflow does where it matters."""

from dataclasses import dataclass, field

from orchestrator.tracking_mirror import Experiment, Found


@dataclass
class Memory:
    """`broken` names the verb that fails; metrics are the last values, `points` all of them with their steps."""

    experiments: dict = field(default_factory=dict)
    all: dict = field(default_factory=dict)
    broken: str = ""

    def experiment(self, name):
        return self.experiments.get(name)

    def create_experiment(self, name):
        made = Experiment(experiment_id=str(len(self.experiments) + 1), active=True, artifacts="")
        self.experiments[name] = made
        return made

    def runs(self, experiment_id, sweep_id):
        return [
            Found(run_id=run_id, tags=dict(run["tags"]))
            for run_id, run in self.all.items()
            if run["experiment"] == experiment_id and run["tags"].get("sweep_id") == sweep_id and not run["deleted"]
        ]

    def create_run(self, experiment_id, row, tags):
        run_id = f"r{len(self.all)}"
        run = {"experiment": experiment_id, "name": row.name, "status": row.status, "tags": dict(tags)}
        self.all[run_id] = {**run, "deleted": False, "params": {}, "metrics": {}, "points": [], "files": []}
        return run_id

    def finish(self, run_id, row):
        self.all[run_id]["status"] = row.status

    def log(self, run_id, row, tags):
        if self.broken == "log":
            raise ConnectionError("gone")
        run = self.all[run_id]
        assert not [name for name, value in row.params.items() if run["params"].get(name, value) != value]
        run["params"] |= row.params
        run["metrics"] |= row.metrics
        run["points"] += [(name, row.step, value) for name, value in row.metrics.items()]
        run["tags"] |= tags

    def delete(self, run_id):
        self.all[run_id]["deleted"] = True

    def attach(self, run_id, path, folder=""):
        if self.broken == "attach":
            raise PermissionError(f"read-only: {path.name}")
        self.all[run_id]["files"].append(f"{folder}/{path.name}".lstrip("/"))

    def attach_text(self, run_id, name, text):
        self.all[run_id]["files"].append(name)

    def active(self):
        return [run for run in self.all.values() if not run["deleted"]]
