# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by slurm_test.sh: a Slurm cluster of two nodes on this machine, with munge, a controller and a GPU on each node
# that is none. Everything is in a folder, on ports and on a socket of its own, so that one that is installed here is left
# alone. Needs no systemd and no rights.

# skip REASON: for CTest, which shows it.
skip() {
  echo "SKIPPED: $1"
  exit 77
}

# start_cluster FOLDER: sets SLURM_CONF. Skips the test where Slurm cannot be started.
start_cluster() {
  local cluster=$1 program host user ports
  PATH=$PATH:/usr/sbin:/sbin
  for program in munged slurmctld slurmd sbatch scontrol; do
    command -v "$program" >/dev/null || skip "no $program here; ci/setup slurm installs it"
  done
  mkdir -p "$cluster/state" "$cluster/spool.n1" "$cluster/spool.n2"
  chmod a+x "$cluster" "$(dirname "$cluster")"  # munge wants its socket to be in everybody's reach
  host=$(hostname -s) user=$(id -un)
  mapfile -t ports < <(python3 - <<'PYTHON'
import socket
sockets = [socket.create_server(("", 0)) for _ in range(3)]
print(*[s.getsockname()[1] for s in sockets], sep="\n")
PYTHON
  )
  (umask 077 && head -c 32 /dev/urandom >"$cluster/munge.key")
  # A job that is started again waits until the credentials of the first start have expired: 5 s is the least that Slurm
  # takes. Sooner (scontrol update StartTime=now) a node may refuse it as killed already, since it compares whole seconds.
  cat >"$cluster/slurm.conf" <<CONF
ClusterName=moegate
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=${ports[0]}
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool.%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
GresTypes=gpu
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=2 RealMemory=1000 Gres=gpu:none:1
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=2 RealMemory=1000 Gres=gpu:none:1
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
CONF
  echo "NodeName=n[1-2] Name=gpu Type=none File=/dev/null" >"$cluster/gres.conf"
  export SLURM_CONF=$cluster/slurm.conf
  munged --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" --pid-file="$cluster/munged.pid" \
    --seed-file="$cluster/munge.seed" --log-file="$cluster/munged.log" >"$cluster/said" 2>&1 &&
    slurmctld >>"$cluster/said" 2>&1 && slurmd -N n1 >>"$cluster/said" 2>&1 && slurmd -N n2 >>"$cluster/said" 2>&1 ||
    skip "Slurm does not start: $(tail -n 3 "$cluster/said" "$cluster"/*.log 2>&1 | tr '\n' ' ')"
  for _ in $(seq 150); do
    [ "$(sinfo --noheader --format '%D %t' 2>/dev/null)" != '2 idle' ] || return 0
    sleep 0.2
  done
  skip "no node of the cluster is idle: $(sinfo 2>&1 | tr '\n' ' ') $(tail -q -n 2 "$cluster"/*.log | tr '\n' ' ')"
}

# stop_cluster FOLDER: jobs and daemons.
stop_cluster() {
  local file
  scancel --user "$(id -un)" >/dev/null 2>&1 || true
  for file in "$1"/slurmd.*.pid "$1/slurmctld.pid" "$1/munged.pid"; do
    [ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
  done
}
