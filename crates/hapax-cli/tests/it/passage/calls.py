"""Calls of gRPC: `calls.py serve PORT` serves them, `calls.py call HOST:PORT` makes one of each kind,
`calls.py keyed HOST:PORT` makes calls again and again under their keys."""

import queue
import sys
import threading
import time
from concurrent import futures

import grpc


def pay(request, context):
    context.send_initial_metadata((("x-early", "1"),))
    context.set_trailing_metadata((("x-receipt", "7"), ("x-seen-bin", b"\x00\xff")))
    metadata = dict(context.invocation_metadata())
    return request + b" for " + metadata.get("x-caller", "nobody").encode()


def refuse(request, context):
    context.set_trailing_metadata((("x-why", "empty"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the purse is empty, ä")


SEEN = []
GO_ON = threading.Event()


def charge(request, context):
    """Has an effect each time, and ends as it is told."""
    SEEN.append(request)
    context.set_trailing_metadata((("x-receipt", str(len(SEEN))),))
    if request == b"slowly":
        GO_ON.wait(30)
    if request.isupper():
        context.abort(grpc.StatusCode[request.decode()], "as told")
    return b"receipt %d for " % len(SEEN) + request[:10]


def large(request, context):
    SEEN.append(request)
    context.set_trailing_metadata((("x-receipt", str(len(SEEN))),))
    return b"x" * (3 << 20)


def seen(request, context):
    if request == b"go on":
        GO_ON.set()
    return str(len(SEEN)).encode()


def count(request, context):
    for number in range(int(request)):
        yield str(number).encode()


def add(requests, context):
    return str(sum(int(number) for number in requests)).encode()


def talk(requests, context):
    yield b"who is there"
    for request in requests:
        yield request.upper()


class Pay(grpc.GenericRpcHandler):
    KINDS = {
        "Pay": grpc.unary_unary_rpc_method_handler(pay),
        "Refuse": grpc.unary_unary_rpc_method_handler(refuse),
        "Charge": grpc.unary_unary_rpc_method_handler(charge),
        "Large": grpc.unary_unary_rpc_method_handler(large),
        "Seen": grpc.unary_unary_rpc_method_handler(seen),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Add": grpc.stream_unary_rpc_method_handler(add),
        "Talk": grpc.stream_stream_rpc_method_handler(talk),
    }

    def service(self, details):
        return self.KINDS.get(details.method.rsplit("/", 1)[-1])


def serve(port):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((Pay(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def call(target):
    options = [("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(target, options=options) as channel:
        answer, done = channel.unary_unary("/shop.Shop/Pay").with_call(
            b"ten", metadata=(("x-caller", "alice"),), timeout=30
        )
        trailing = dict(done.trailing_metadata())
        print(answer.decode(), dict(done.initial_metadata())["x-early"], trailing)
        try:
            channel.unary_unary("/shop.Shop/Refuse")(b"ten", timeout=30)
        except grpc.RpcError as error:
            print(error.code().name, error.details(), dict(error.trailing_metadata())["x-why"])
        try:
            channel.unary_unary("/shop.Shop/Nothing")(b"", timeout=30)
        except grpc.RpcError as error:
            print(error.code().name)
        numbers = channel.unary_stream("/shop.Shop/Count")(b"5", timeout=30)
        print(*[number.decode() for number in numbers])
        print(channel.stream_unary("/shop.Shop/Add")(iter([b"1", b"2", b"39"]), timeout=30).decode())
        # The server speaks first, and the client takes its time: longer than a body may stall.
        said = queue.Queue()
        answers = channel.stream_stream("/shop.Shop/Talk")(iter(said.get, None), timeout=60)
        print(next(answers).decode())
        time.sleep(2)
        for word in [b"one", b"two"]:
            said.put(word)
            print(next(answers).decode())
        said.put(None)
        print(list(answers))


def keyed(target):
    options = [("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0)]
    with grpc.insecure_channel(target, options=options) as channel:
        effects = lambda said=b"": channel.unary_unary("/shop.Shop/Seen")(said, timeout=30).decode()

        def told(method, key, request):
            metadata = [("authorization", "alice")]
            if key:
                metadata.append(("idempotency-key", key))
            call = channel.unary_unary(f"/shop.Shop/{method}")
            try:
                answer, done = call.with_call(request, metadata=metadata, timeout=30)
                code, text = "OK", answer[:24].decode()
            except grpc.RpcError as error:
                done, code, text = error, error.code().name, error.details()
            early, late = dict(done.initial_metadata() or ()), dict(done.trailing_metadata() or ())
            both = early | late
            marks = [both[name] for name in ("hapax-refusal", "x-receipt") if name in both]
            if "grpc-retry-pushback-ms" in both:
                marks.append("ask again")
            if "idempotent-replayed" in both:
                marks.append("replayed")
            return " ".join([code, repr(text), *marks])

        def twice(method, key, request):
            print(told(method, key, request))
            print("  again:", told(method, key, request), "| effects", effects())

        twice("Charge", "paid", b"ten")
        print(told("Charge", "paid", b"eleven"))
        print(told("Charge", None, b"ten"))
        twice("Charge", "refused", b"FAILED_PRECONDITION")
        twice("Charge", "denied", b"PERMISSION_DENIED")
        twice("Charge", "away", b"UNAVAILABLE")
        twice("Charge", "exhausted", b"RESOURCE_EXHAUSTED")
        twice("Charge", "broken", b"INTERNAL")
        twice("Large", "large", b"")
        first = threading.Thread(target=lambda: print(told("Charge", "slow", b"slowly")))
        before = int(effects())
        first.start()
        while int(effects()) == before:
            time.sleep(0.01)
        print(told("Charge", "slow", b"slowly"))
        effects(b"go on")
        first.join()
        print(told("Charge", "slow", b"slowly"))


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
elif sys.argv[1] == "keyed":
    keyed(sys.argv[2])
else:
    call(sys.argv[2])
