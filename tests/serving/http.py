"""A client that knows nothing of HTTP but what it needs: what is sent is sent as it is."""

import asyncio
import json
import urllib.error
import urllib.request


def ask(served, path, content=None, body=None, method=None):
    """Asks the REST API; returns status and content."""
    data = json.dumps(content).encode() if content is not None else body
    request = urllib.request.Request(f"http://127.0.0.1:{served.rest}{path}", data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def predict(served, model, **content):
    return ask(served, f"/v1/models/{model}:predict", content)


def predicted(served, model, **content):
    """The content of an answer that is no error."""
    status, answer = predict(served, model, **content)
    assert status == 200, answer
    return answer


async def send(port, data, patience=20.0):
    """Sends bytes; returns the status and the body, or ("closed", b"") without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience)
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        body = await asyncio.wait_for(reader.readexactly(length), patience)
        return int(head.split()[1]), body
    except (asyncio.IncompleteReadError, ConnectionError):
        return "closed", b""
    finally:
        writer.close()
