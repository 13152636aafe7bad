#!/bin/sh
# Pays for an order once, however often it is run and wherever it was interrupted:
#   sh call.sh ORDER CENTS [URL]
set -eu

order=${1:?give the order, such as order-17}
cents=${2:?give the amount in cents}
url=${3:-http://127.0.0.1:8080}
hapax=${HAPAX:-hapax}

case $order in *[!A-Za-z0-9-]*) echo "an order has letters, digits and hyphens" >&2; exit 2 ;; esac
case $cents in *[!0-9]*) echo "an amount has digits" >&2; exit 2 ;; esac

# The key is the order, so that another shell, or another machine, pays for it only once too.
status=0
answer=$("$hapax" call POST "$url/payments" --key "$order" --quiet --deadline "${DEADLINE:-2m}" \
    --json "{\"account\": \"shell\", \"amount\": $cents, \"reference\": \"$order\"}") || status=$?

case $status in
    0) echo "$order is paid: $answer" ;;
    3) echo "$order was refused: $answer" ;;
    4) echo "$order may be paid, and nobody said; run this again" ;;
    5) echo "$order is not paid, nobody was reached; run this again" ;;
    *) echo "$order: nothing is known" ;;
esac
exit "$status"
