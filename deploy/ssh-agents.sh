#!/bin/bash
# Starts, shows and stops knee agents on a list of hosts over ssh. It needs knee, bash and setsid on
# the hosts, and a login by key.
#
#   ./ssh-agents.sh start HOSTS agent.env [-- --allow-target 10.0.0.0/8 --labels zone=a]
#   ./ssh-agents.sh status HOSTS
#   ./ssh-agents.sh stop HOSTS
#
# HOSTS is a file with one host per line, as ssh takes it (user@host or an alias of ~/.ssh/config);
# empty lines and lines that begin with # are skipped. What agent.env holds is explained in
# agent.env.example. It travels over the standard input of ssh, so that no secret is ever an
# argument, and is kept on the host in ~/.knee-agent, which only its owner may read. Files that it
# names (NATS_CREDS, NATS_NKEY, NATS_CA, NATS_CERT, NATS_KEY) are copied there from this machine.
#
# SSH_OPTIONS adds options to ssh, KNEE is the program on the hosts (default: knee).

# The functions are called by the name of the verb.
# shellcheck disable=SC2317
set -euo pipefail

fail() {
    echo "ssh-agents.sh: $*" >&2
    exit 2
}

usage() {
    sed -n '2,15s/^# \{0,1\}//p' "$0"
    exit "$1"
}

# Without -n, ssh would read the list of hosts; where it needs an input it is given one.
remote() {
    local host=$1
    shift
    # SSH_OPTIONS is a list of words.
    # shellcheck disable=SC2086
    ssh -o BatchMode=yes -o ConnectTimeout=10 ${SSH_OPTIONS:-} "$host" "$@"
}

hosts() {
    [ -r "$1" ] || fail "cannot read the list of hosts '$1'"
    local found
    found=$(sed -e 's/#.*//' -e 's/[[:space:]]//g' "$1" | grep -v '^$') || fail "no host in '$1'"
    case $found in -* | *$'\n'-*) fail "a host in '$1' begins with '-'" ;; esac
    echo "$found"
}

# Copies a file, which only its owner may read on the host.
put() {
    remote "$1" "umask 077 && mkdir -p ~/.knee-agent && cat > ~/.knee-agent/$3" <"$2"
}

# Copies the environment, and the files that it names.
put_environment() {
    local host=$1 name value line lines=''
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in '' | '#'*) continue ;; esac
        name=${line%%=*}
        value=${line#*=}
        [[ $line == *=* && $name =~ ^[A-Z_][A-Z0-9_]*$ ]] || fail "expected NAME=value in '$2'"
        case $name in
        NATS_CREDS | NATS_NKEY | NATS_CA | NATS_CERT | NATS_KEY)
            [ -r "$value" ] || fail "cannot read the file that $name names: '$value'"
            put "$host" "$value" "$name"
            # The agent is started in that directory.
            value=./$name
            ;;
        esac
        lines+="$name=$value"$'\n'
    done <"$2"
    put "$host" <(printf '%s' "$lines") env
}

start() {
    local host=$1 environment=$2 quoted
    shift 2
    put_environment "$host" "$environment"
    quoted=$(printf '%q ' "${KNEE:-knee}" agent "$@")
    # Values are read as they are: a shell that sourced them would run what they hold.
    remote "$host" bash <<REMOTE
set -eu
cd ~/.knee-agent
if [ -s pid ] && kill -0 "\$(cat pid)" 2>/dev/null; then
    echo "an agent already runs, process \$(cat pid)"
    exit 1
fi
while IFS= read -r line; do export "\${line%%=*}=\${line#*=}"; done <env
ulimit -n "\$(ulimit -Hn)"
umask 077
setsid $quoted </dev/null >log 2>&1 &
echo \$! >pid
sleep 1
if kill -0 "\$(cat pid)" 2>/dev/null; then
    echo "started, process \$(cat pid)"
else
    echo "the agent ended at once:"
    tail -n 5 log
    rm -f pid env NATS_CREDS NATS_NKEY NATS_CA NATS_CERT NATS_KEY
    exit 1
fi
REMOTE
}

status() {
    remote "$1" bash <<'REMOTE'
cd ~/.knee-agent 2>/dev/null || { echo "no agent"; exit 1; }
if [ -s pid ] && kill -0 "$(cat pid)" 2>/dev/null; then
    echo "runs, process $(cat pid): $(tail -n 1 log)"
else
    echo "no agent runs"
    exit 1
fi
REMOTE
}

# SIGTERM ends the agent; a trial in hand is INVALID then, and names it; the secrets go with the agent.
stop() {
    remote "$1" bash <<'REMOTE'
cd ~/.knee-agent 2>/dev/null || { echo "no agent"; exit 0; }
pid=$(cat pid 2>/dev/null) || pid=
if [ -n "$pid" ] && kill -TERM "$pid" 2>/dev/null; then
    for _ in $(seq 600); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$pid" 2>/dev/null; then echo "still runs after 60 s, process $pid"; exit 1; fi
    echo "stopped"
else
    echo "no agent runs"
fi
rm -f pid env NATS_CREDS NATS_NKEY NATS_CA NATS_CERT NATS_KEY
REMOTE
}

[ $# -ge 1 ] || usage 2
verb=$1
shift
case $verb in
start)
    [ $# -ge 2 ] || usage 2
    list=$1 environment=$2
    shift 2
    [ "${1:-}" != -- ] || shift
    [ -r "$environment" ] || fail "cannot read the environment '$environment'"
    set -- "$environment" "$@"
    ;;
status | stop)
    [ $# -eq 1 ] || usage 2
    list=$1
    shift
    ;;
-h | --help | help) usage 0 ;;
*) usage 2 ;;
esac

names=$(hosts "$list")
# All hosts at once: agents on many hosts start within seconds.
failed=0
declare -A running=()
for host in $names; do
    { "$verb" "$host" "$@" 2>&1 | sed "s|^|$host: |"; } &
    running[$host]=$!
done
for host in "${!running[@]}"; do
    wait "${running[$host]}" || failed=1
done
exit "$failed"
