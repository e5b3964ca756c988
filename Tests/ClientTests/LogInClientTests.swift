import Foundation
import Testing

/// The programs of Debian's packages, whatever other Python the machine has.
private let python = "/usr/bin/python3"
private func pythonHas(_ module: String) -> Bool {
    FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/\(module)")
}

@Suite(
    "Libraries that log in to the proxy",
    .enabled(if: Nginx.isInstalled && installed("openssl") != nil, "packages nginx-light, openssl"))
struct LogInClientTests {
    @Test(.enabled(if: pythonHas("requests"), "package python3-requests"), arguments: [false, true])
    func `requests logs in with Basic, for requests and for tunnels`(_ tls: Bool) async throws {
        try await Asking.with(tls: tls) { s in
            let script = """
                import sys, requests
                url, right, wrong, certificate = sys.argv[1:]
                with requests.Session() as session:
                    session.verify = certificate
                    for _ in range(2):
                        print(session.get(url, proxies={"http": right, "https": right}, timeout=30).text, end="")
                    try:
                        print(session.get(url, proxies={"http": wrong, "https": wrong}, timeout=30).status_code)
                    except requests.exceptions.ProxyError as error:
                        print("407" if "407" in str(error) else error)
                """
            let output = try await s.place.run(
                python,
                [
                    "-c", script, s.url(tls: tls), s.larder.url(as: "ann:secret"), s.larder.url(as: "ann:guess"),
                    s.place.path("certificate.pem"),
                ])
            #expect(output.out == "made for a test\nmade for a test\n407\n", "\(output)")
        }
    }

    @Test(.enabled(if: pythonHas("aiohttp"), "package python3-aiohttp"), arguments: [false, true])
    func `aiohttp logs in with Basic, for requests and for tunnels, ten at a time`(_ tls: Bool) async throws {
        try await Asking.with(tls: tls) { s in
            let script = """
                import aiohttp, asyncio, ssl, sys
                url, proxy, certificate = sys.argv[1:]
                context = ssl.create_default_context(cafile=certificate) if url.startswith("https") else None

                async def get(session, password, number):
                    login = aiohttp.BasicAuth("ann", password)
                    async with session.get(f"{url}?{number}", proxy=proxy, proxy_auth=login, ssl=context) as answer:
                        return answer.status, await answer.text()

                async def main():
                    async with aiohttp.ClientSession() as session:
                        answers = await asyncio.gather(*(get(session, "secret", n) for n in range(10)))
                        print(set(answers))
                        try:
                            print((await get(session, "guess", 10))[0])
                        except aiohttp.ClientHttpProxyError as error:
                            print(error.status)

                asyncio.run(main())
                """
            let output = try await s.place.run(
                python, ["-c", script, s.url(tls: tls), s.larder.url, tls ? s.place.path("certificate.pem") : ""])
            #expect(output.out == "{(200, 'made for a test\\n')}\n407\n", "\(output)")
        }
    }

    @Test(.enabled(if: installed("node") != nil, "package nodejs"), arguments: [false, true])
    func `Node logs in on the connection that was asked, for requests and for tunnels`(_ tls: Bool) async throws {
        try await Asking.with(tls: tls) { s in
            let script = """
                const http = require('http'), https = require('https');
                const [proxy, url] = [new URL(process.argv[2]), new URL(process.argv[3])];
                const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
                const login = 'Basic ' + Buffer.from('ann:secret').toString('base64');
                function ask(method, path, headers) {
                    return new Promise((resolve, reject) => {
                        const request = http.request(
                            { agent, host: proxy.hostname, port: proxy.port, method, path, headers });
                        const end = (answer, socket) => resolve({ answer, socket, again: request.reusedSocket });
                        request.on('response', end).on('connect', end).on('error', reject).end();
                    });
                }
                async function text(answer) {
                    let all = '';
                    for await (const part of answer) all += part;
                    return all;
                }
                (async () => {
                    const tunnel = url.protocol === 'https:';
                    const words = tunnel
                        ? ['CONNECT', url.host, { Host: url.host }] : ['GET', url.href, { Host: url.host }];
                    const asked = await ask(...words);
                    console.log(asked.answer.statusCode, asked.answer.headers['proxy-authenticate'].includes('Basic'));
                    if (!tunnel) await text(asked.answer);
                    words[2]['Proxy-Authorization'] = login;
                    const known = await ask(...words);
                    if (!tunnel) {
                        console.log(known.answer.statusCode, known.again, (await text(known.answer)).trim());
                    } else {
                        const answer = await new Promise((resolve, reject) => https.get(
                            url, { agent: false, rejectUnauthorized: false, createConnection: () =>
                                require('tls').connect({ socket: known.socket, rejectUnauthorized: false }) },
                            resolve).on('error', reject));
                        console.log(known.answer.statusCode, (await text(answer)).trim());
                    }
                    process.exit(0);
                })();
                """
            let file = try s.place.write("client.js", script.utf8)
            let output = try await s.place.run("node", [file, s.larder.url, s.url(tls: tls)])
            let ends = tls ? "200 made for a test\n" : "200 true made for a test\n"
            #expect(output.out == "407 true\n" + ends, "\(output)")
        }
    }
}

extension Asking {
    /// The file as a client finds it that looks at certificates.
    fileprivate func url(tls: Bool) -> String { tls ? "https://localhost:\(nginx.port)/file" : url }
}
