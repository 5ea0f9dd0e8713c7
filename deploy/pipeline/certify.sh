#!/bin/sh
# Certify a reduced skill on a server with curl alone, and fail the build when it must fail.
#
#   RETIRE_SERVER=https://retire.example RETIRE_TOKEN=... \
#     certify.sh BUNDLE CANDIDATE DEPLOYMENT [PLACEMENT]
#
# Exit codes: 0 pass, 1 fail, 2 bad input or a server that refuses, 3 incomplete,
# 4 pass on evidence that is not from a live model.
#
# Further settings:
#   RETIRE_ACCEPT_EVIDENCE  kinds of evidence, separated by spaces, on which a pass exits with 0
#   RETIRE_CERTIFICATE      file for the signed certificate (certificate.json)
#   RETIRE_KEY              idempotency key, such as the build's number: a repeated build asks for
#                           the run it started before
#   RETIRE_INSECURE_HTTP    set to send the token in the clear, to an http address elsewhere
#   RETIRE_TRIES            how often to look for a server that has gone (15)
set -eu
umask 077
LC_ALL=C
export LC_ALL

die() {
    printf 'certify.sh: %s\n' "$2" >&2
    exit "$1"
}

[ "$#" -ge 3 ] && [ "$#" -le 4 ] || die 2 'usage: certify.sh BUNDLE CANDIDATE DEPLOYMENT [PLACEMENT]'
bundle=$1 candidate=$2 deployment=$3 placement=${4:-B2}
server=${RETIRE_SERVER:-} token=${RETIRE_TOKEN:-}
certificate=${RETIRE_CERTIFICATE:-certificate.json}
[ -n "$server" ] || die 2 'RETIRE_SERVER is not set: give the address of the server'
[ -n "$token" ] || die 2 'RETIRE_TOKEN is not set: give a token with scope certify'
case $token in *[!A-Za-z0-9_-]*) die 2 'RETIRE_TOKEN holds characters that no token has' ;; esac
[ -r "$candidate" ] || die 2 "$candidate cannot be read"
server=${server%/}
host=${server#http://}
case $host in
https://* | localhost | localhost:* | 127.0.0.1 | 127.0.0.1:* | "[::1]" | "[::1]":*) ;;
*) [ -n "${RETIRE_INSECURE_HTTP:-}" ] ||
    die 2 'RETIRE_SERVER is not https, so the token would travel in the clear' ;;
esac

work=$(mktemp -d) || die 2 'no temporary folder can be made'
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The token goes in by standard input: arguments of a process are visible to every user.
authorized_curl() {
    printf 'header = "Authorization: Bearer %s"\n' "$token" |
        curl --config - --silent --show-error --connect-timeout 10 "$@"
}

# ask FILE ARGUMENTS...: the body goes into FILE, the status to standard output.
ask() {
    answer=$1
    shift
    authorized_curl --max-time 120 --output "$answer" --write-out '%{http_code}' "$@"
}

# word NAME: the text value of a key in compact JSON. Quotes inside of values are escaped, so no
# value can pass for a key.
word() {
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

refuse() {
    printf 'certify.sh: the server refused (status %s)\n' "$1" >&2
    cat "$2" >&2
    printf '\n' >&2
    exit 2
}

rm -f "$certificate"
tar -C "$bundle" -czf "$work/bundle.tar.gz" bundle.yaml SKILL.md ledger.yaml contract.yaml \
    effect.yaml world.yaml tasks.yaml || die 2 "$bundle is no bundle"

[ -z "${RETIRE_KEY:-}" ] || printf 'Idempotency-Key: %s\n' "$RETIRE_KEY" >"$work/key"
[ -e "$work/key" ] || printf 'Accept: application/json\n' >"$work/key"
# A name with ; or , would be read by curl as more than a name.
cp "$candidate" "$work/SKILL.md"
status=$(ask "$work/run" --dump-header "$work/headers" --header "@$work/key" \
    --form "archive=@$work/bundle.tar.gz;type=application/gzip" \
    --form "candidate=@$work/SKILL.md;type=text/markdown" \
    --form-string "deployment=$deployment" --form-string "placement=$placement" \
    "$server/certify") || die 2 "$server cannot be reached"
case $status in 200 | 202) ;; *) refuse "$status" "$work/run" ;; esac
run=$(sed -n 's/^[Ll]ocation: *\(\/runs\/[A-Za-z0-9_-]*\).*/\1/p' "$work/headers")
[ -n "$run" ] || die 2 "what answers at $server is no certification service"
printf 'certify.sh: %s%s\n' "$server" "$run" >&2

# The server sends a comment every 15 seconds: a minute of silence is a dead connection.
gone=0
while :; do
    authorized_curl --no-buffer --speed-limit 1 --speed-time 60 "$server$run/events" \
        2>"$work/lost" | sed -n 's/^data: *//p' >&2 || :
    if status=$(ask "$work/run" "$server$run" 2>"$work/lost"); then
        case $status in
        200)
            gone=0
            case $(word state <"$work/run") in queued | running) ;; *) break ;; esac
            ;;
        429 | 5*) gone=$((gone + 1)) ;;
        *) refuse "$status" "$work/run" ;;
        esac
    else
        gone=$((gone + 1))
    fi
    [ "$gone" -lt "${RETIRE_TRIES:-15}" ] ||
        die 3 "the server has gone; the run may go on, ask for it at $server$run"
    sleep 1
done

# The link of the run ends in the certificate's id.
name=$(word certificate <"$work/run")
name=${name##*/}
if [ -z "$name" ]; then
    cat "$work/run" >&2
    die 3 'the run ended without a certificate; the reason stands above'
fi
status=$(ask "$work/certificate" "$server/certificates/$name") ||
    die 3 "the server has gone; ask for $server/certificates/$name"
[ "$status" = 200 ] || refuse "$status" "$work/certificate"
status=$(ask "$work/found" --header 'Content-Type: application/json' \
    --data-binary "@$work/certificate" "$server/verify") ||
    die 3 "the server has gone; the certificate could not be verified"
[ "$status" = 200 ] || refuse "$status" "$work/found"
grep -q '"intact":true' "$work/found" || {
    cat "$work/found" >&2
    die 1 'the certificate does not verify'
}
cp "$work/certificate" "$certificate" || die 2 "$certificate cannot be written"

word payload <"$work/certificate" | base64 -d >"$work/statement" ||
    die 2 'the certificate cannot be read'
verdict=$(word verdict <"$work/statement")
evidence=$(word evidence <"$work/statement")
printf '%s on %s evidence; the certificate is %s\n' "$verdict" "$evidence" "$certificate"
case $verdict in
pass) ;;
fail) exit 1 ;;
*) exit 3 ;;
esac
[ "$evidence" != live_model ] || exit 0
for kind in ${RETIRE_ACCEPT_EVIDENCE:-}; do
    [ "$kind" != "$evidence" ] || exit 0
done
echo 'certify.sh: a pass on this kind of evidence is not permission to ship' >&2
exit 4
