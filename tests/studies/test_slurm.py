"""Studies on workers that are jobs of SLURM, started by dask-jobqueue."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

import killed_study
from killed_study import contents

pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Port 8787 is already in use"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]  # those of Dask and its packages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "many-machines.md"

SBATCH = """#!/bin/sh
job=$(mktemp "$0.XXXXXX") && cp "$1" "$job"  # the script is deleted when this one returns
setsid sh "$job" >/dev/null 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do kill -- -"$job"; done
"""


@pytest.fixture(scope="module")
def jobqueue():
    """Return dask-jobqueue, which replaces the handler of Ctrl-C when it is imported: other tests need theirs."""
    before = signal.getsignal(signal.SIGINT)
    package = pytest.importorskip("dask_jobqueue")
    signal.signal(signal.SIGINT, before)
    return package


def test_the_job_of_the_tutorial(jobqueue):
    """Make the cluster of the tutorial, and find its cores, memory and time in the script of its jobs."""
    call = re.search(r"SLURMCluster\(\n.*?\n    \)", PAGE.read_text(), re.DOTALL)
    assert call is not None
    with eval(call.group(), {"SLURMCluster": jobqueue.SLURMCluster}) as cluster:
        script = cluster.job_script()
    for line in ("#SBATCH --cpus-per-task=32", "#SBATCH --mem=60G", "#SBATCH -t 02:00:00", "#SBATCH -p compute"):
        assert line in script.splitlines()
    assert re.search(r"dask_worker tcp://\S+ .*--nthreads 1 .*--nworkers 32 ", script)
    assert "--lifetime 110m --lifetime-stagger 4m" in script


def test_jobs_run_a_study(tmp_path, monkeypatch, jobqueue):
    """Submit two jobs to a stand-in for SLURM that runs their scripts at once, and find equal bytes."""
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(x for x in sys.path if x))
    killed_study.study(tmp_path / "here.zarr")
    with (
        jobqueue.SLURMCluster(
            cores=1, processes=1, memory="1GB", walltime="00:10:00", local_directory=str(tmp_path),
            scheduler_options={"dashboard_address": ":0"},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=120)
        killed_study.study(tmp_path / "there.zarr", on=client)
    assert contents(tmp_path / "there.zarr") == contents(tmp_path / "here.zarr")
