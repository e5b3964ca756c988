import Authentication
import Foundation
import Passwords
import Rules
import Server
import Settings
import TLS
import Testing
import Tokens

/// A user, a token of a file and a signed token, and what ends each of them.
private enum LogIn: CaseIterable, Sendable {
    case removedUser, changedPassword, removedToken, removedKey

    var field: String {
        switch self {
        case .removedUser, .changedPassword:
            "Proxy-Authorization: Basic \(Data("ann:secret".utf8).base64EncodedString())"
        case .removedToken: "Proxy-Authorization: Bearer \(BearerScenarios.token)"
        case .removedKey: "Proxy-Authorization: Bearer \(BearerScenarios.signed("ann"))"
        }
    }

    func end(_ material: inout AuthenticationMaterial) throws {
        switch self {
        case .removedUser: material.users = HtpasswdFile()
        case .changedPassword: material.users = try users(["ann": "other"])
        case .removedToken: material.tokens = TokenFile()
        case .removedKey: material.tokenKeys = JSONWebKeySet()
        }
    }
}

private func line(_ user: String, _ password: String) throws -> String {
    "\(user):\(try hash(password: Array(password.utf8)))\n"
}

private func users(_ passwords: [String: String]) throws -> HtpasswdFile {
    HtpasswdFile.parse(Array(try passwords.map { try line($0, $1) }.joined().utf8)).file
}

@Suite("An identity lasts as long as its proof")
struct EndedIdentityScenarios {
    private static func logIns(_ configuration: inout Configuration, _ files: Scenario.Files) throws {
        try BearerScenarios.tokens(&configuration, files)
        configuration.access.authentication.basic.usersFile = try files.write("users", try line("ann", "secret"))
        configuration.access.rules = []
        configuration.access.connectPorts = [1...65535]
    }

    @Test(arguments: LogIn.allCases)
    fileprivate func `in an opened tunnel each request asks whether the log-in of the CONNECT still holds`(
        _ logIn: LogIn
    ) throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let stored = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nsecret"
        let origin = try TLSOrigin(certificate, .answers(stored))
        defer { origin.end() }
        try scenario({ configuration, files in
            try Self.logIns(&configuration, files)
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
        }) { s in
            let authority = "127.0.0.1:\(origin.port)"
            let client = try s.tunnel(to: authority, logIn.field)
            try client.wire.secure(s.trust(), name: "127.0.0.1")
            for _ in 0..<4 { #expect(try client.getInside("/a", host: authority).text == "secret") }
            #expect(s.count(.hitsByEarlierDecision) > 0)
            let shelf = s.proxy.snapshot.authentication
            // Who is added changes nothing for those who are there.
            var material = shelf.material
            material.groups = GroupsFile.parse(Array("ops: ann\n".utf8)).file
            s.proxy.adopt(material, for: shelf)
            for _ in 0..<4 { #expect(try client.getInside("/a", host: authority).text == "secret") }
            try logIn.end(&material)
            s.proxy.adopt(material, for: shelf)
            var answer = try client.getInside("/a", host: authority)
            try s.eventually("the log-in has ended") {
                if answer.status == 200 { answer = try client.getInside("/a", host: authority) }
                return answer.status != 200
            }
            #expect(answer.status == 403 && answer.text.contains("open the tunnel again"), "\(answer)")
            #expect(answer["Connection"] == "close" && answer["Proxy-Authenticate"] == nil, "\(answer)")
            try client.expectClosed()
            try s.eventually("the reason is counted") { try s.stat(.closes, "identity-ended") == 1 }
        }
    }

    @Test(arguments: LogIn.allCases)
    fileprivate func `a tunnel that stays closed ends with the log-in of its CONNECT`(_ logIn: LogIn) throws {
        try scenario(Self.logIns) { s in
            let client = try s.tunnel(to: s.origin.authority, logIn.field)
            let other = try s.tunnel(to: s.origin.authority, LogIn.removedToken.field)
            let shelf = s.proxy.snapshot.authentication
            var material = shelf.material
            try logIn.end(&material)
            s.proxy.adopt(material, for: shelf)
            try client.expectClosed()
            if logIn != .removedToken {
                s.origin.expects("GET /a").replies(200, body: "a")
                try other.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
                #expect(try other.response().text == "a")
            }
            let lines = try s.logLines()
            #expect(lines.contains { $0.contains("\"close\":\"identity-ended\"") }, "\(lines)")
        }
    }

    @Test func `a tunnel of SOCKS ends with the user who asked for it`() throws {
        try scenario(Self.logIns) { s in
            let client = try s.client()
            try client.wire.write([5, 1, 2])
            #expect(try client.reader.bytes(2) == [5, 2])
            try client.wire.write([1, 3] + Array("ann".utf8) + [6] + Array("secret".utf8))
            #expect(try client.reader.bytes(2) == [1, 0])
            try client.wire.write(
                [5, 1, 0, 1, 127, 0, 0, 1, UInt8(s.origin.port >> 8), UInt8(s.origin.port & 255)])
            #expect(try client.reader.bytes(10).prefix(2) == [5, 0])
            s.origin.expects("GET /a").replies(200, body: "a")
            try client.send("GET /a HTTP/1.1\r\nHost: \(s.origin.authority)\r\n\r\n")
            #expect(try client.response().text == "a")
            let shelf = s.proxy.snapshot.authentication
            var material = shelf.material
            material.users = HtpasswdFile()
            s.proxy.adopt(material, for: shelf)
            try client.expectClosed()
        }
    }
}
