# SPDX-License-Identifier: Apache-2.0
"""Slurm's own daemons from Debian, with two nodes on this machine. Jobs of two users share the
(software) GPU of a node by --gres=mps, and are held to their percentage and to their memory."""
import re

import fleet

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "munge", "python3-minimal", "libpython3-stdlib",
            "procps", "util-linux", "libevent-core-2.1-7", "libevent-2.1-7", "libedit2", "libjansson4",
            "liblz4-1", "libzstd1"]

# Two nodes: names, processes and /run/funnel of their own, as far as Funnel and Slurm look.
SETUP = """
    dpkg -i /packages/funnel_*.deb /packages/libfunnel-cuda_*.deb /packages/funnel-softgpu_*.deb \
        >/dev/null 2>&1
    mkdir -p /etc/slurm/funnel /var/spool/slurmctld /run/munge /var/log/slurm
    install -m 755 /slurm/prolog /slurm/epilog /slurm/task_prolog /etc/slurm/funnel/
    useradd -m alice
    useradd -m bob
    mknod /dev/shm/gpu0 c 1 3
    {
        echo ClusterName=funnel
        echo SlurmctldHost=control
        echo SlurmUser=root
        echo AuthType=auth/munge
        echo StateSaveLocation=/var/spool/slurmctld
        echo SlurmdSpoolDir=/var/spool/slurmd-%n
        echo SlurmdPidFile=/run/slurmd-%n.pid
        echo SlurmdLogFile=/var/log/slurm/slurmd-%n.log
        echo SlurmctldLogFile=/var/log/slurm/slurmctld.log
        echo ProctrackType=proctrack/pgid
        echo TaskPlugin=task/none
        echo SlurmdParameters=config_overrides
        echo MpiDefault=none
        echo ReturnToService=2
        echo SchedulerParameters=batch_sched_delay=0,sched_interval=1
        cat /slurm/slurm.conf.part
        echo NodeName=n1 NodeAddr=127.0.0.1 Port=17001 CPUs=8 Gres=gpu:1,mps:100
        echo NodeName=n2 NodeAddr=127.0.0.1 Port=17002 CPUs=8 Gres=gpu:1,mps:100
        echo PartitionName=all Nodes=n1,n2 Default=YES OverSubscribe=FORCE:8
    } >/etc/slurm/slurm.conf
    echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf
    sed 's,/dev/nvidia0,/dev/shm/gpu0,' /slurm/gres.conf.part >/etc/slurm/gres.conf
    printf 'FUNNEL_DEVICE=soft\\nFUNNEL_SOFT_DEVICES=1:sms=16,mem=1G\\nFUNNEL_JOB_MEMORY=300M\\n' \
        >/etc/default/funnel
    echo 127.0.0.1 control n1 n2 >>/etc/hosts
    hostname control
    chown munge: /run/munge
    [ -e /etc/munge/munge.key ] || { dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 \
        2>/dev/null; chown munge: /etc/munge/munge.key; chmod 400 /etc/munge/munge.key; }
    setpriv --reuid munge --regid munge --clear-groups munged --force 2>/dev/null
    slurmctld -c
    for node in n1 n2; do
        mkdir -p /var/spool/slurmd-$node
        unshare --uts --mount sh -c "hostname $node; mkdir -p /run/funnel /run/funnel-jobs
            mount -t tmpfs tmpfs /run/funnel; mount -t tmpfs tmpfs /run/funnel-jobs
            mount -t tmpfs tmpfs /var/log/funnel; exec slurmd -D" >/var/log/slurm/$node.out 2>&1 &
    done
    for i in $(seq 100); do
        [ "$(sinfo -h -o %T -N 2>/dev/null | grep -c idle)" != 2 ] || break
        sleep 0.3
    done
    sinfo -N -o '%N %T %G'
    as() { user=$1; shift; setpriv --reuid $user --regid $user --init-groups env HOME=/home/$user "$@"; }
    # The node's own view of Funnel: in the namespaces of its slurmd.
    on() { node=$1; shift; nsenter -m -u -r -w -t $(pgrep -f -x "slurmd -D" | while read -r pid; do
        [ "$(nsenter -u -t $pid hostname)" != $node ] || echo $pid; done | head -n 1) "$@"; }
"""

SHOW_LOGS = """
    trap 'status=$?; [ $status = 0 ] || tail -n 30 /var/log/slurm/*; exit $status' EXIT
"""

JOBS = """
    cd /tmp
    echo == one job
    as alice timeout 60 srun -J one -w n1 --gres=mps:25 sh -c \
        'echo "percent $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"; python3 /probe/probe.py; echo "group $FUNNEL_GROUP"'
    echo == two users
    as alice timeout 60 srun -J alice -w n1 --gres=mps:25 sh -c 'python3 /probe/probe.py 40 0.2' &
    one=$!
    as bob timeout 60 srun -J bob -w n1 --gres=mps:50 sh -c 'python3 /probe/probe.py 40 0.2' &
    two=$!
    for i in $(seq 60); do
        [ "$(on n1 funnel ps | grep -c python3)" != 2 ] || break
        sleep 0.2
    done
    on n1 funnel limits
    wait $one $two
    echo == a user who asks for more than the job has
    as bob timeout 60 srun -J more -w n1 --gres=mps:25 sh -c 'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100 \
        FUNNEL_GROUP= python3 /probe/share.py'
    echo == the memory of a job
    as bob timeout 60 srun -J memory -w n1 --gres=mps:25 python3 /probe/share.py 200
    as bob timeout 60 srun -J memory -w n1 --gres=mps:25 python3 /probe/share.py 400 || echo refused
    echo == both nodes
    as alice timeout 60 srun -J both -N 2 --gres=mps:10 sh -c 'echo "$(hostname): $(python3 /probe/probe.py | tail -n 1)"'
    echo == without a share
    as alice timeout 60 srun -J none -w n2 sh -c 'echo "library <${LD_LIBRARY_PATH-}>"'
    for i in $(seq 50); do [ -n "$(squeue -h)" ] || break; sleep 0.2; done
    echo == afterwards
    on n1 funnel limits | grep '^user.*[%B] ' || echo no limits are left
    on n1 ls /run/funnel-jobs
    echo == accounting
    on n1 grep -h -o 'job_[0-9]*' /var/log/funnel/control.log | sort | uniq -c
"""


def run(scene):
    packages = fleet.make_packages(scene.work)
    root = fleet.Root(scene, packages=PACKAGES)
    scene.step("made a Debian 12 with slurmctld, slurmd and munge")
    text = root.run(SHOW_LOGS + SETUP + JOBS, timeout=300, binds={
        packages: "/packages", fleet.ROOT / "packaging/slurm": "/slurm", fleet.HERE: "/probe"})
    one = text.partition("== one job")[2].partition("== two users")[0]
    scene.expect(one, "percent 25", "sum ok", "group job_")
    limits = text.partition("== two users")[2].partition("== a user")[0]
    scene.expect(limits, "alice", "bob")
    if sorted(re.findall(r"(\d+) of 16 .*python3", limits)) != ["4", "8"]:
        raise fleet.Failed(f"the two programs do not have 4 and 8 of 16 multiprocessors:\n{limits}")
    more = text.partition("== a user")[2].partition("== the memory")[0]
    scene.expect(more, "multiprocessors 4")
    memory = text.partition("== the memory")[2].partition("== both nodes")[0]
    scene.expect(memory, "allocated 200 MiB", "refused")
    scene.expect_not(memory, "allocated 400 MiB")
    scene.expect(text.partition("== both nodes")[2], "n1: sum ok", "n2: sum ok", "library <>",
                 "no limits are left", " job_1\n", " job_2\n")
    scene.step("jobs of two users shared a node's GPU by gres/mps, held to percentage and memory")
    root.remove()
