#!/usr/bin/env bash
# Runs a script under a real `systemd --user` where none is running: mount and cgroup namespaces of its own, its own
# D-Bus, /run empty. Needs root, cgroup v2, systemd and dbus-daemon; leaves nothing behind. Exit code 77: cannot be done
# here, the reason is on standard error; else the script's own. There is no journal in it.
# Usage: systemd_user.sh SCRIPT [ARGUMENT...]   (HOME and XDG_CONFIG_HOME are the caller's)
set -eu
cannot() { echo "systemd_user: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || cannot "needs root"
for tool in systemctl dbus-daemon unshare; do command -v $tool >/dev/null || cannot "no $tool"; done
manager=
for path in /usr/lib/systemd/systemd /lib/systemd/systemd; do [ ! -x $path ] || { manager=$path; break; }; done
[ -n "$manager" ] || cannot "no systemd"
cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$cgroups" ] || cannot "no cgroup v2"
home=$cgroups$(sed -n 's/^0:://p' /proc/self/cgroup)
own=$cgroups/memxd-test-$$
mkdir -p "$own" 2>/dev/null || cannot "cgroup v2 is read-only"
echo $$ > "$own/cgroup.procs" || { rmdir "$own"; cannot "may not change cgroups"; }
leave() {
    echo $$ > "$home/cgroup.procs"
    for _ in $(seq 50); do
        find "$own" -depth -type d -exec rmdir {} \; 2>/dev/null || true
        [ -d "$own" ] || return 0
        sleep 0.2
    done
}
trap leave EXIT
export MANAGER=$manager
unshare --mount --cgroup --propagation private bash -c '
    set -u
    mount -t tmpfs tmpfs /run || exit 77
    mkdir -p /run/systemd/system /run/user/0
    chmod 700 /run/user/0
    umount -R /sys/fs/cgroup 2>/dev/null || umount -lR /sys/fs/cgroup || exit 77
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 77
    export XDG_RUNTIME_DIR=/run/user/0 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus
    dbus-daemon --session --address=$DBUS_SESSION_BUS_ADDRESS --nofork --nopidfile 2>/dev/null & bus=$!
    for _ in $(seq 100); do [ -S /run/user/0/bus ] && break; sleep 0.1; done
    "$MANAGER" --user --log-target=null & manager=$!
    for _ in $(seq 100); do
        state=$(systemctl --user is-system-running 2>/dev/null || true)
        case $state in running | degraded) break ;; esac
        sleep 0.1
    done
    status=0
    case ${state:-} in
        running | degraded) "$@" || status=$? ;;
        *) echo "systemd_user: systemd --user does not come up" >&2; status=77 ;;
    esac
    kill $manager; wait $manager || true
    kill $bus
    exit $status
' inner "$@"
