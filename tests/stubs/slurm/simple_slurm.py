"""Stands for the package `simple_slurm`, which HELM's SlurmRunner submits jobs with: it calls `sbatch`."""

import re
import subprocess


class Slurm:
    def __init__(self, **arguments):
        self.arguments = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]

    def sbatch(self, command):
        said = subprocess.run(
            ["sbatch", *self.arguments, "--wrap", command], capture_output=True, text=True, check=True
        )
        return int(re.search(r"Submitted batch job (\d+)", said.stdout).group(1))
