# SPDX-License-Identifier: Apache-2.0
"""Open MPI from Debian with two hosts on this machine, which have names, addresses, processes and a
daemon of their own. Four ranks, two on each host's (software) GPU, exchange what their kernels
wrote."""
import fleet

PACKAGES = ["openmpi-bin", "libopenmpi-dev", "gcc", "libc6-dev", "iproute2", "util-linux",
            "libevent-core-2.1-7", "libevent-2.1-7", "libedit2", "libjansson4", "liblz4-1", "libncursesw6", "libzstd1",
            "mount"]

SETUP = """
    dpkg -i /packages/funnel_*.deb /packages/libfunnel-cuda_*.deb /packages/funnel-softgpu_*.deb \
        >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; false; }
    mpicc /probe/mpi_exchange.c -o /usr/bin/mpi_exchange -ldl
    printf '10.9.0.1 n1\\n10.9.0.2 n2\\n' >>/etc/hosts
    for node in n1 n2; do
        unshare --uts --net --mount sh -c "hostname $node; ip link set lo up; mount -t tmpfs tmpfs /tmp
            echo \\$\\$ >/run/$node; mount -t tmpfs tmpfs /run; exec sleep infinity" &
    done
    for i in $(seq 100); do
        [ ! -s /run/n1 ] || [ ! -s /run/n2 ] || break
        sleep 0.1
    done
    ip link add link1 netns $(cat /run/n1) type veth peer name link2 netns $(cat /run/n2)
    # on HOST COMMAND: what a remote shell is between real hosts.
    cat >/usr/bin/on <<'END'
#!/bin/sh
pid=$(cat /hosts/$1)
shift
exec nsenter -u -n -m -t $pid sh -c "$*"
END
    chmod 755 /usr/bin/on
    mkdir /hosts
    cp /run/n1 /run/n2 /hosts
    for i in 1 2; do on n$i "ip address add 10.9.0.$i/24 dev link$i && ip link set link$i up"; done
"""

RUN = """
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CUDA_MPS_PIPE_DIRECTORY=/tmp/mps
    options="--mca plm_rsh_agent /usr/bin/on --mca btl_tcp_if_include 10.9.0.0/24 \
        --mca oob_tcp_if_include 10.9.0.0/24 -x CUDA_MPS_PIPE_DIRECTORY -H n1:2,n2:2"
    on n1 "cd /tmp && timeout 100 mpirun $options funnel run -q --device soft -- mpi_exchange"
    for node in n1 n2; do
        echo "$node had $(on $node grep -c attached /tmp/mps/log/control.log) clients"
        on $node funnel stop --force
    done
"""


def run(scene):
    packages = fleet.make_packages(scene.work)
    root = fleet.Root(scene, packages=PACKAGES)
    scene.step("made a Debian 12 with Open MPI")
    text = root.run(SETUP + RUN, timeout=300, binds={packages: "/packages", fleet.HERE: "/probe"})
    scene.expect(text, "4 ranks on 2 hosts: exchanged and summed", "n1 had 2 clients",
                 "n2 had 2 clients")
    scene.step("four ranks on two hosts exchanged what their kernels wrote")
    root.remove()
