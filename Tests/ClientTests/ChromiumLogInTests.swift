import Foundation
import Testing

/// A real browser, driven over its debugging pipe, with a person who knows the password.
@Suite(
    "Chromium logs in to the proxy",
    .enabled(
        if: Nginx.isInstalled && installed("chromium") != nil && installed("python3") != nil
            && installed("openssl") != nil, "packages chromium, nginx-light, openssl, python3"))
struct ChromiumLogInTests {
    @Test(arguments: [false, true])
    func `with Digest, asking its user once, for requests and for tunnels`(_ tls: Bool) async throws {
        try await Asking.with(tls: tls) { s in
            try s.place.write("www/page.html", Self.page)
            let url = tls ? "https://127.0.0.1:\(s.nginx.port)/page.html" : "\(s.nginx.url)/page.html"
            let output = try await s.browse([url, "\(url)?2"])
            #expect(output.out == "asked: Proxy digest larder\n" + String(repeating: Self.shown, count: 2), "\(output)")
            #expect(s.nginx.asked("/page.html").count == 1 && s.nginx.asked("/page.html?2").count == 1)
        }
    }

    @Test func `with Basic where nothing else is offered`() async throws {
        try await Asking.with(.ofHtpasswd) { s in
            try s.place.write("www/page.html", Self.page)
            let output = try await s.browse(["\(s.nginx.url)/page.html"])
            #expect(output.out == "asked: Proxy basic larder\n" + Self.shown, "\(output)")
        }
    }

    /// What a person sees who gives up.
    @Test func `a wrong password is asked for again, and then the page of Larder is shown`() async throws {
        try await Asking.with { s in
            try s.place.write("www/page.html", Self.page)
            let output = try await s.browse(["\(s.nginx.url)/page.html"], as: "ann:guess")
            let asked = "asked: Proxy digest larder\n"
            #expect(output.out.hasPrefix(asked + asked + "page: ") && output.out.contains("407"), "\(output)")
            #expect(s.nginx.asked("/page.html").isEmpty)
        }
    }

    @Test func `through TLS to the proxy`() async throws {
        try await Workplace.with { place in
            try await Asking.start(in: place, listener: try await place.ownTLS()) { s in
                try place.write("www/page.html", Self.page)
                let output = try await s.browse(
                    ["\(s.nginx.url)/page.html"], ["--proxy-server=https://127.0.0.1:\(s.larder.port)"])
                #expect(output.out == "asked: Proxy digest larder\n" + Self.shown, "\(output)")
            }
        }
    }

    @Test(arguments: ["proxy.pac", "wpad.dat"])
    func `a browser that is told of the proxy by its own file logs in`(_ file: String) async throws {
        try await Asking.with(more: "dns: { hosts: { \"*.test\": 127.0.0.1 } }") { s in
            try s.place.write("www/page.html", Self.page)
            let output = try await s.browse(
                ["http://pages.test:\(s.nginx.port)/page.html"], ["--proxy-pac-url=\(s.larder.url)/\(file)"])
            #expect(output.out == "asked: Proxy digest larder\n" + Self.shown, "\(output)")
        }
    }

    private static let page = Array("<html><body>made for a test</body></html>".utf8)
    private static let shown = "page: made for a test\n"
}

extension Asking {
    /// What the browser shows of each page, and when it asks for a password.
    fileprivate func browse(
        _ urls: [String], _ proxy: [String]? = nil, as credentials: String = "ann:secret"
    ) async throws -> Workplace.Output {
        let script = try place.write("browse.py", Self.driver.utf8)
        let browser = [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--ignore-certificate-errors",
            "--user-data-dir=\(place.path("profile"))", "--proxy-bypass-list=<-loopback>",
        ]
        return try await place.run(
            "timeout",
            ["110", "python3", script, credentials] + urls + ["--"] + browser
                + (proxy ?? ["--proxy-server=\(larder.url)"]), within: .seconds(120))
    }

    /// Speaks the DevTools protocol over a pair of pipes.
    private static let driver = """
        import json, os, subprocess, sys

        split = sys.argv.index("--")
        name, password = sys.argv[1].split(":")
        urls, browser = sys.argv[2:split], sys.argv[split + 1:]
        to_browser, outgoing = os.pipe()
        incoming, from_browser = os.pipe()

        def place_pipes():
            # The browser reads descriptor 3 and writes 4. Copies above them are not overwritten by either.
            import fcntl
            pair = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            for end, place in zip(pair, (3, 4)): os.dup2(end, place)

        child = subprocess.Popen(
            browser + ["--remote-debugging-pipe"], preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        reader = os.fdopen(incoming, "rb")
        pending, number, answered = b"", 0, set()

        def send(method, session=None, **parameters):
            global number
            number += 1
            message = {"id": number, "method": method, "params": parameters}
            if session: message["sessionId"] = session
            os.write(outgoing, json.dumps(message).encode() + b"\\0")
            return number

        def receive():
            global pending
            while b"\\0" not in pending:
                got = reader.read1(65536)
                if not got: sys.exit("the browser has ended")
                pending += got
            text, _, pending = pending.partition(b"\\0")
            return json.loads(text)

        def handle(message):
            method, parameters = message.get("method"), message.get("params")
            if method == "Fetch.requestPaused":
                send("Fetch.continueRequest", message["sessionId"], requestId=parameters["requestId"])
            elif method == "Fetch.authRequired":
                challenge, url = parameters["authChallenge"], parameters["request"]["url"]
                if url.endswith("/favicon.ico"):
                    answer = {"response": "CancelAuth"}
                else:
                    print("asked:", challenge["source"], challenge["scheme"], challenge["realm"], flush=True)
                    answer = {"response": "CancelAuth"} if url in answered else {
                        "response": "ProvideCredentials", "username": name, "password": password}
                answered.add(url)
                send("Fetch.continueWithAuth", message["sessionId"], requestId=parameters["requestId"],
                     authChallengeResponse=answer)

        def call(method, session=None, **parameters):
            own = send(method, session, **parameters)
            while True:
                message = receive()
                if message.get("id") == own:
                    if "error" in message: sys.exit(f"{method}: {message['error']}")
                    return message["result"]
                handle(message)

        target = call("Target.createTarget", url="about:blank")["targetId"]
        session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        call("Fetch.enable", session, handleAuthRequests=True)
        call("Page.enable", session)
        call("Page.setLifecycleEventsEnabled", session, enabled=True)
        for url in urls:
            # An answer with the loader; a page that was loaded before it does not count.
            own, loader, error, loaded = send("Page.navigate", session, url=url), None, None, set()
            while loader is None or loader not in loaded:
                message = receive()
                if message.get("id") == own:
                    loader, error = message["result"].get("loaderId"), message["result"].get("errorText")
                    if error: break
                elif message.get("method") == "Page.lifecycleEvent" and message["params"]["name"] == "load":
                    loaded.add(message["params"]["loaderId"])
                else:
                    handle(message)
            if error:
                print("error:", error, flush=True)
            else:
                text = call("Runtime.evaluate", session, expression="document.body.innerText")["result"]["value"]
                print("page:", text.strip(), flush=True)
        send("Browser.close")
        child.wait()
        """
}
