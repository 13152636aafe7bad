"""Calls of gRPC: `calls.py serve PORT` serves them, `calls.py call HOST:PORT` makes one of each kind."""

import queue
import sys
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


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    call(sys.argv[2])
