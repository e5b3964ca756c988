import Access
import Authentication
import Credentials
import EventLoop
import Foundation
import Framing
import Limiting
import Message
import ProgramUnderTest
import Routing
import Origins
import Rules
@testable import Server
import Settings
import Testing
import Tokens
import Transaction

/// How a refusal is brought about.
private enum Provocation: Sendable {
    typealias Configure = @Sendable (inout Configuration, Scenario.Files) throws -> Void

    /// By clients and origins. `play` returns the refusal as the client got it.
    case outside(configure: Configure, play: @Sendable (Scenario) throws -> SeenMessage)
    /// No client and no origin can bring it about. `happens` is true if it still follows from its cause, one level below.
    case inside(why: String, happens: @Sendable () throws -> Bool)

    static func outside(_ play: @escaping @Sendable (Scenario) throws -> SeenMessage) -> Provocation {
        .outside(configure: { _, _ in }, play: play)
    }
}

extension Refusal {
    /// A new refusal does not compile until it says how it is brought about.
    fileprivate var provocation: Provocation {
        switch self {
        case .notAProxyRequest: .outside { try $0.answer(to: "GET / HTTP/1.1\r\nHost: h\r\n\r\n") }
        case .hostInvalid:
            .outside { try $0.client().get("http://\(String(repeating: "a", count: 64)).example/") }
        case .accessDenied: .accessDenied
        case .destinationForbidden:
            .outside(
                configure: { configuration, _ in configuration.access.privateDestinations = .deny },
                play: { try $0.client().get("/a") })
        case .tunnelPortForbidden:
            .outside(
                configure: { configuration, _ in configuration.access.privateDestinations = .deny },
                play: { try $0.client().request("CONNECT", "name.test:22") })
        case .authenticationRequired: .authenticationRequired
        case .authenticationBusy: .authenticationBusy
        case .authenticationUnavailable: .authenticationUnavailable
        case .directoryUnavailable: .directoryUnavailable
        case .loopDetected:
            .outside { s in
                s.origin.expects("GET /a").replies(200)
                try s.client().get("/a")
                return try s.client().get("/b", "Via: \(s.origin.requests.last?["Via"] ?? "")")
            }
        case .onlyIfCached: .outside { try $0.client().get("/a", "Cache-Control: only-if-cached") }
        case .malformedRequestBody: .malformedRequestBody
        case .lengthRequired: .lengthRequired
        case .requestTimeout:
            .outside(
                configure: { configuration, _ in configuration.timeouts.clientHead = .milliseconds(200) },
                play: { try $0.answer(to: "GET http://") })
        case .misdirected:
            .outside(
                configure: { try $1.intercept("127.0.0.1", in: &$0) },
                play: { s in
                    let client = try s.secureTunnel(to: "127.0.0.1:443")
                    return try client.getInside("/a", host: "other.example")
                })
        case .nameNotFound: .name(.noSuchName)
        case .nameTimeout: .name(.silence)
        case .nameServersSilent: .nameServersSilent
        case .connectionRefused:
            .outside { s in
                let closed = try Unanswering.ClosedPort()
                return try withExtendedLifetime(closed) { try s.client().get("http://127.0.0.1:\(closed.port)/") }
            }
        case .connectionTimeout: .connectionTimeout
        case .destinationUnroutable:
            // The broadcast address of loopback: TCP has no route to it, and nothing leaves the machine.
            .outside { try $0.client().get("http://127.255.255.255:1/") }
        case .connectionTerminated: .brokenAnswer("")
        case .responseTimeout: .responseTimeout
        case .responseIncomplete: .brokenAnswer("HTTP/1.1 200 OK\r\nContent-")
        case .responseInvalid: .brokenAnswer("SSH-2.0-x\r\n\r\n")
        case .originAsksForProxyLogIn:
            .brokenAnswer("HTTP/1.1 407 Log In\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
        case .digestMismatch: .digestMismatch
        case .redirectLoop: .redirects("/a")
        case .tooManyRedirects: .redirects("/b")
        case .tlsCertificate: .tls(.answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
        case .tlsPin: .tlsPin
        case .tlsProtocol: .tls(.speaksPlainly)
        case .clientCertificateRequired: .clientCertificateRequired
        case .clientCertificateRefused: .clientCertificateRefused
        case .originQueueFull: .originQueueFull
        case .originUnavailable: .originUnavailable
        case .nextProxyUnreachable:
            .outside { s in
                let closed = try Unanswering.ClosedPort()
                try s.adopt(routes: s.nextProxy(port: closed.port))
                return try withExtendedLifetime(closed) { try s.client().get("/a") }
            }
        case .nextProxyRefused: .nextProxy("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        case .nextProxyLogIn: .nextProxy("HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=a\r\n\r\n")
        case .nextProxyLogInIncomplete:
            .outside { s in
                try s.adoptConnectionLogIns(at: NextProxy(Endpoint(host: "127.0.0.1", port: s.origin.port)))
                s.origin.expects("CONNECT a.example:443").replies(407, "Proxy-Authenticate: NTLM")
                s.origin.expects("CONNECT a.example:443").closes()
                return try s.client().request("CONNECT", "a.example:443")
            }
        case .nextProxyInvalid: .nextProxy("SSH-2.0-x\r\n\r\n")
        case .routeUnknown:
            .outside { s in
                try s.adopt(pac: "throw 1;")
                return try s.client().get("/a")
            }
        case .credentialRefused:
            .outside { s in
                s.origin.expects("GET /a", "Authorization: Basic bWU6c2VzYW1l").replies(401)
                try s.adopt(credentials: s.credential(isUnasked: true))
                return try s.client().get("/a")
            }
        case .credentialUnavailable:
            .outside { s in
                try s.adopt(credentials: s.credential(secret: .file("/nowhere")))
                return try s.client().get("/a")
            }
        case .credentialLogInIncomplete:
            .outside { s in
                s.origin.expects("GET /a").replies(401, "WWW-Authenticate: NTLM")
                s.origin.expects("GET /a").replies(401, "WWW-Authenticate: NTLM bm8gbWVzc2FnZQ==")
                try s.adopt(credentials: s.credential(schemes: [.ntlm]))
                return try s.client().get("/a")
            }
        case .originUnproven:
            .inside(
                why: "It takes a service of Kerberos: NegotiateScenarios has one.",
                happens: { Refusal(ConnectionLogIn.Failure.unproven) == .originUnproven })
        case .credentialMisplaced:
            .outside { s in
                let text = try s.placeholder()
                return try s.client().get("/a", "User-Agent: \(text)")
            }
        case .credentialHidden:
            .outside { s in
                let text = try s.placeholder()
                s.origin.expects("GET /a").replies(200, "Content-Encoding: br", body: "x")
                return try s.client().get("/a", "Authorization: Bearer \(text)")
            }
        case .requestRateReached: .limit(.init(requests: TokenRate(1, per: .day)))
        case .concurrencyReached: .limit(.init(concurrent: 1))
        case .budgetSpent: .spentBudget
        case .contentTooLarge:
            .outside(
                configure: { configuration, _ in configuration.limit(LimitTerms(requestBody: 3)) },
                play: { try $0.client().request("POST", "/a", body: "four") })
        case .responseTooLarge:
            .outside(
                configure: { configuration, _ in configuration.limit(LimitTerms(responseBody: 3)) },
                play: { s in
                    s.origin.expects("GET /a").replies(200, body: "four")
                    return try s.client().get("/a")
                })
        case .sharedLimitReached: .limit(.init(concurrent: 1), per: .all)
        case .tooManyRequests: .tooManyRequests
        case .overloaded:
            .outside { s in
                let client = try s.client()
                let busy = Gate("the origin was asked")
                let go = Gate("the origin may answer")
                s.origin.expects("GET /busy").opens(busy).waits(for: go).replies(200, body: "whole")
                try client.ask("GET", "/busy")
                try busy.wait()
                // The next request is there already when the load rises: its connection is not idle.
                try client.ask("GET", "/next")
                s.proxy.shared.overload.assume(
                    memory: .init(used: 96, limit: 100), descriptors: .init(used: 0, limit: 100))
                try s.eventually("the load is noticed") { s.proxy.shared.overload.state == .overloaded }
                go.open()
                #expect(try client.response().text == "whole", "what is under way goes on")
                return try client.response()
            }
        case .tooManyTunnels: .tooManyTunnels
        case .transferCancelled: .transferCancelled
        case .tooYoung: .minimumAge("3650d", "Last-Modified: \(MinimumAgeScenarios.date(-60))")
        case .releaseUndated: .minimumAge("{ age: 1d, undated: refuse }")
        case .internalError:
            .inside(
                why: "It stands for a fault of Larder's, such as a TLS session that cannot be made.",
                happens: { Refusal(OpeningFailure.insecure(.noSession)) == .internalError })
        }
    }
}

@Suite("Every refusal is provoked")
struct RefusalScenarios {
    @Test(arguments: Refusal.allCases)
    func `the answer, the statistics and the log name the refusal`(_ refusal: Refusal) throws {
        switch refusal.provocation {
        case .inside(let why, let happens):
            #expect(try happens(), "\(why)")
        case .outside(let configure, let play):
            try scenario(configure) { s in
                let answer = try play(s)
                #expect(answer.status == Int(refusal.status), "\(answer)")
                let isTyped = answer["Proxy-Status"]?.hasPrefix("larder; error=\(refusal.proxyStatusError); details=")
                #expect(isTyped == true, "\(answer)")
                #expect(answer.cacheStatus.contains("detail=\(refusal.name)"), "\(answer)")
                if let seconds = refusal.retryAfter { #expect(answer["Retry-After"] == "\(seconds)") }
                if refusal.isOfOrigin {
                    #expect(try s.stat(.errors, "\(refusal.proxyStatusError)") == 1)
                } else {
                    #expect(try s.stat(.refusals, refusal.name) == 1)
                }
                let outcome = refusal.isOfOrigin ? "error" : "refused"
                #expect(try s.stat(.requests, outcome) >= 1)
                let word = "\"outcome\":\"\(outcome)\",\"reason\":\"\(refusal.name)\""
                // The log names the rule of HTTP that an origin broke.
                let rule = "\"outcome\":\"\(outcome)\",\"reason\":\"bad-status-line\""
                let expected = refusal == .responseInvalid ? rule : word
                let lines = try s.logLines()
                #expect(lines.contains { $0.contains(expected) }, "\(lines)")
            }
        }
    }
}

extension Configuration {
    fileprivate mutating func limit(_ terms: LimitTerms, per scope: LimitScope = .client) {
        limitPlan = LimitPlan([LimitRule(name: "small", RuleConditions(), per: scope, terms)])
    }
}

// MARK: provocations of more than a line

extension Scenario {
    /// - Parameter bytes: of a request, as a client sends them.
    fileprivate func answer(to bytes: String) throws -> SeenMessage {
        let client = try client()
        try client.send(bytes)
        return try client.response()
    }
}

extension Provocation {
    /// - Parameter answer: of the next proxy to CONNECT.
    fileprivate static func nextProxy(_ answer: String) -> Provocation {
        outside { s in
            try s.adopt(routes: s.nextProxy())
            s.origin.expects("CONNECT a.example:443").sends(answer)
            return try s.client().request("CONNECT", "a.example:443")
        }
    }

    fileprivate static let digestMismatch = outside(
        configure: { configuration, files in
            try configuration.read(
                cache:
                    "rules: [ { match: { path: \"/{hex:64}\" }, ttl: 60s, digest: { from: path, algorithm: sha256 } } ]",
                files)
        },
        play: { s in
            let path = "/" + String(repeating: "0", count: 64)
            for _ in 0..<2 { s.origin.expects("GET \(path)").replies(200, body: "not this") }
            return try s.client().get(path)
        })

    /// - Parameter location: where `/a` redirects.
    fileprivate static func redirects(_ location: String) -> Provocation {
        outside(
            configure: { configuration, _ in
                configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 1, number: 1)]
            },
            play: { s in
                s.origin.expects("GET /a").replies(302, "Location: \(location)")
                if location != "/a" { s.origin.expects("GET \(location)").replies(302, "Location: /c") }
                return try s.client().get("/a")
            })
    }

    fileprivate static let accessDenied = outside(
        configure: { configuration, _ in
            configuration.access.rules = [AccessRule(effect: .deny(reason: "not today"), number: 1)]
        },
        play: { try $0.client().get("/a") })

    /// The hash is cheap, so that the failures come in quick succession on a busy machine as well.
    private static let withUsers: Configure = { configuration, files in
        configuration.access.authentication.basic.usersFile = try files.write(
            "users", "ann:$1$salt$qJH7.N4xYta3aEG/dfqo/0\n")
    }

    fileprivate static let authenticationRequired = outside(
        configure: withUsers, play: { try $0.client().get("/a") })

    /// The keys are still to be fetched.
    fileprivate static let authenticationUnavailable = outside(
        configure: { configuration, _ in
            configuration.access.authentication.bearer.keys = KeySetSource("https://127.0.0.1:1/keys")
            configuration.access.authentication.bearer.terms = BearerScenarios.terms
        },
        play: { try $0.client().get("/a", "Proxy-Authorization: Bearer \(BearerScenarios.signed("ann"))") })

    /// Nobody listens on port 1.
    fileprivate static let directoryUnavailable = outside(
        configure: { configuration, _ in
            var directory = DirectorySettings()
            directory.urls = ["ldap://127.0.0.1:1"].compactMap { DirectoryURL($0) }
            directory.startsTLS = false
            directory.usersBase = "dc=example"
            configuration.access.authentication.directory = directory
        },
        play: { s in
            let credentials = Data("ann:secret".utf8).base64EncodedString()
            return try s.client().get("/a", "Proxy-Authorization: Basic \(credentials)")
        })

    fileprivate static let authenticationBusy = outside(
        configure: withUsers,
        play: { s in
            let client = try s.client()
            var number = 0
            while true {
                number += 1
                let guess = Data("ann:guess\(number)".utf8).base64EncodedString()
                let answer = try client.get("/a", "Proxy-Authorization: Basic \(guess)")
                if answer.status != 407 || number > 1000 { return answer }
            }
        })

    fileprivate static let lengthRequired = outside(
        configure: { configuration, _ in
            var connections = OriginRule.Connections()
            connections.isHTTP10 = true
            configuration.origins = [OriginRule(RuleConditions(), connections: connections, number: 1)]
        },
        play: { s in
            try s.answer(
                to: "POST \(s.origin.url("/a")) HTTP/1.1\r\nHost: \(s.origin.authority)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
        })

    fileprivate static let malformedRequestBody = outside { s in
        let origin = try Unanswering.Listener()
        return try withExtendedLifetime(origin) {
            try s.answer(
                to: "POST http://127.0.0.1:\(origin.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\nno size\r\n")
        }
    }

    /// By what the name server says.
    fileprivate static func name(_ answer: ScriptedNames.Answer) -> Provocation {
        let names = Result { try ScriptedNames(answer) }
        return outside(
            configure: { configuration, _ in
                configuration.dns.servers = [.tcp(IPAddress(v4: 0x7F00_0001), port: try names.get().port)]
                // While it is silent, this ends the wait.
                if answer == .silence { configuration.timeouts.connect = .milliseconds(300) }
            }, play: { try $0.client().get("http://name.test/") })
    }

    private static let silentNames = Result { try ScriptedNames(.silence) }
    fileprivate static let nameServersSilent = outside(
        configure: { configuration, _ in
            configuration.dns.servers = [.tcp(IPAddress(v4: 0x7F00_0001), port: try silentNames.get().port)]
            configuration.timeouts.connect = .milliseconds(1100)
        },
        play: { s in
            // It looks the name up as well, and is no request. The first one may end a moment before the look-up; when the second ends, that has.
            for _ in 0..<2 { _ = try s.proxy.explain(ExplainQuestion(target: "http://name.test/")) }
            return try s.client().get("http://name.test/")
        })

    fileprivate static let connectionTimeout = outside(
        configure: { configuration, _ in configuration.timeouts.connect = .milliseconds(300) },
        play: { s in
            let full = try Unanswering.FullListener()
            return try withExtendedLifetime(full) { try s.client().get("http://127.0.0.1:\(full.port)/") }
        })

    fileprivate static let originUnavailable = outside(
        configure: { configuration, _ in
            configuration.timeouts.connect = .milliseconds(300)
            configuration.circuit.failuresMax = 1
            configuration.circuit.pause = .seconds(60)
        },
        play: { s in
            let full = try Unanswering.FullListener()
            return try withExtendedLifetime(full) {
                let client = try s.client()
                try client.get("http://127.0.0.1:\(full.port)/")
                return try client.get("http://127.0.0.1:\(full.port)/")
            }
        })

    /// The origin sends this and closes. The request is one that is not sent again.
    fileprivate static func brokenAnswer(_ bytes: String) -> Provocation {
        outside { s in
            s.origin.expects("POST /a").sends(bytes).closes()
            return try s.client().request("POST", "/a", body: "x")
        }
    }

    fileprivate static let responseTimeout = outside(
        configure: { configuration, _ in configuration.timeouts.firstByte = .milliseconds(300) },
        play: { s in
            s.origin.expects("POST /a").hangs()
            return try s.client().request("POST", "/a", body: "x")
        })

    /// The certificate is signed by nobody that the system trusts.
    fileprivate static func tls(_ behaviour: TLSOrigin.Behaviour) -> Provocation {
        outside { s in
            let origin = try TLSOrigin(try MadeCertificate(for: "IP:127.0.0.1"), behaviour)
            defer { origin.end() }
            return try s.client().get(origin.url("/a"))
        }
    }

    private static let askingCertificate = Result { try MadeCertificate(for: "IP:127.0.0.1") }
    fileprivate static let clientCertificateRequired = outside(
        configure: { configuration, files in
            configuration.tls.caFile = try files.write("origin.pem", askingCertificate.get().certificate)
        },
        play: { s in
            let origin = try AskingOrigin(askingCertificate.get(), .required, version: "-tls1_3")
            defer { origin.end() }
            return try s.client().get(origin.url("/a"))
        })

    /// The one that is pinned belongs to another certificate.
    fileprivate static let tlsPin = outside(
        configure: { configuration, files in
            configuration.tls.caFile = try files.write("origin.pem", askingCertificate.get().certificate)
            var tls = OriginTLS()
            tls.pins = [try #require(PublicKeyPin("sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))]
            configuration.origins = [OriginRule(RuleConditions(), tls: tls, number: 1)]
        },
        play: { s in
            let origin = try TLSOrigin(try askingCertificate.get(), .answers(TLSScenarios.stored))
            defer { origin.end() }
            return try s.client().get(origin.url("/a"))
        })

    /// The origin trusts another certificate.
    fileprivate static let clientCertificateRefused = outside(
        configure: { configuration, files in
            let own = try askingCertificate.get()
            configuration.tls.caFile = try files.write("origin.pem", own.certificate)
            var tls = OriginTLS()
            tls.identity = .pem(
                certificate: try files.write("own.pem", own.certificate), key: try files.write("own.key", own.key))
            configuration.origins = [OriginRule(RuleConditions(), tls: tls, number: 1)]
        },
        play: { s in
            let other = try MadeCertificate(for: "DNS:other.test")
            let origin = try AskingOrigin(askingCertificate.get(), .required, version: "-tls1_3", trusting: other)
            defer { origin.end() }
            return try s.client().get(origin.url("/a"))
        })

    fileprivate static let originQueueFull = outside(
        configure: { configuration, _ in
            configuration.workers = .count(1)
            configuration.limits.originConnectionsMax = 1
            configuration.limits.originQueueMax = 0
        },
        play: { try $0.answer(whileBusyWith: "/a") })

    fileprivate static let tooManyRequests = outside(
        configure: { configuration, _ in configuration.limits.exchangesMax = 1 },
        play: { try $0.answer(whileBusyWith: "/a") })

    /// The second request meets a limit.
    fileprivate static func limit(_ terms: LimitTerms, per scope: LimitScope = .client) -> Provocation {
        outside(
            configure: { configuration, _ in configuration.limit(terms, per: scope) },
            play: { try $0.answer(whileBusyWith: "/a") })
    }

    fileprivate static let spentBudget = outside(
        configure: { configuration, _ in configuration.limit(LimitTerms(budget: ByteBudget(1, every: .week))) },
        play: { s in
            s.origin.expects("GET /a").replies(200, body: "a")
            let client = try s.client()
            #expect(try client.get("/a").text == "a")
            return try client.get("/a")
        })

    /// The origin's file is too young, or has no date.
    fileprivate static func minimumAge(_ age: String, _ fields: String...) -> Provocation {
        outside(
            configure: { configuration, files in
                try configuration.read(
                    cache: "rules: [ { match: { path: /a }, release: file, min_age: \(age) } ]", files)
            },
            play: { s in
                s.origin.expects("GET /a").replies(200, fields, Array("body".utf8))
                return try s.client().get("/a")
            })
    }

    fileprivate static let transferCancelled = outside { s in
        let origin = try Unanswering.Listener()
        return try withExtendedLifetime(origin) {
            let client = try s.client()
            try client.send("GET http://127.0.0.1:\(origin.port)/ HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n\r\n")
            try s.eventually("the origin has been asked") { s.proxy.transfers().first?.state == .waiting }
            #expect(s.proxy.cancelTransfer(s.proxy.transfers()[0].id))
            return try client.response()
        }
    }

    fileprivate static let tooManyTunnels = outside(
        configure: { configuration, files in
            configuration.limits.tunnelsMax = 1
            configuration.access.connectPorts = [files.origin.port...files.origin.port]
        },
        play: { s in
            let first = try s.client()
            #expect(try first.request("CONNECT", s.origin.authority).status == 200)
            return try s.client().request("CONNECT", s.origin.authority)
        })
}

extension Scenario {
    /// Asks for `/b` while the origin has not answered the request for another path.
    fileprivate func answer(whileBusyWith path: String) throws -> SeenMessage {
        let asked = Gate("the origin was asked")
        origin.expects("GET \(path)").opens(asked).hangs()
        let first = try client()
        try first.ask("GET", path)
        try asked.wait()
        return try withExtendedLifetime(first) { try client().get("/b") }
    }
}
