import Testing

/// A proxy that opens every tunnel, in Python: it answers `CONNECT`, then speaks TLS with the certificate of the host that was asked
/// for. A client may as well speak TLS at once and name the host by SNI. Each response is `#done`.
struct LeafServer: Sendable {
    let port: UInt16
    var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameter leaves: a directory with `HOST.pem` and `HOST.key` for each host.
    static func start(in place: Workplace, leaves: String) async throws -> LeafServer {
        let program = try place.write("interceptor.py", source.utf8)
        let child = try await place.start("python3", [program, leaves])
        let port = try await eventually("the interceptor listens; it said: \(child.errors)") {
            child.output.split(separator: "\n").first.flatMap { UInt16($0) }
        }
        return LeafServer(port: port)
    }

    private static let source = #"""
        import os, socket, ssl, sys, threading

        directory = sys.argv[1]
        contexts = {}
        for name in os.listdir(directory):
            if name.endswith(".pem"):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(f"{directory}/{name}", f"{directory}/{name[:-4]}.key")
                contexts[name[:-4]] = context

        def choose(connection, name, context):
            if name in contexts:
                connection.context = contexts[name]

        def read_head(connection):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                byte = connection.recv(1)
                if not byte:
                    return None
                head += byte
            return head.decode()

        def serve(connection):
            try:
                name = None
                if connection.recv(1, socket.MSG_PEEK) != b"\x16":
                    target = read_head(connection).split(" ")[1]
                    name = target.rsplit(":", 1)[0].strip("[]")
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                context = contexts.get(name) or next(iter(contexts.values()))
                context.sni_callback = choose
                with context.wrap_socket(connection, server_side=True) as secure:
                    if read_head(secure):
                        fields = b"Content-Type: text/plain\r\nContent-Length: 6\r\nConnection: close\r\n"
                        secure.sendall(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n#done\n")
                        secure.settimeout(0.2)  # for the close_notify of the client, which some do not send
                        secure.unwrap()
            except (OSError, AttributeError):
                pass  # the client left, or refused the certificate
            finally:
                connection.close()

        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        print(listener.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        """#
}
