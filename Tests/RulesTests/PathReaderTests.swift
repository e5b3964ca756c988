import Caching
import Message
import Releases
import Rules
import Testing

/// Readers written on their own, as deployed software reads paths: each does its steps in its own order.
private enum Reader: CaseIterable {
    case servlet, apache, nginx, cgi, rfc3986, urlStandard, windows, twice, framework, gateway, files, urlFiles
    case nginxThenServlet, resolverThenServlet, resolverThenCutter

    func read(_ path: String) -> String {
        switch self {
        // Tomcat, Jetty: parameters, then decoding, then one "/", then dots.
        case .servlet: dots(merged(decoded(cut(path))))
        case .apache: merged(dots(decoded(path)))
        case .nginx: dots(merged(decoded(path)))
        // Nothing is merged.
        case .cgi: dots(decoded(path))
        case .rfc3986: decoded(dots(path))
        case .urlStandard: decoded(dots(encodedDots(path.replacing("\\", with: "/"))))
        case .windows: dots(merged(decoded(path).replacing("\\", with: "/")))
        case .twice: dots(merged(decoded(dots(merged(decoded(path))))))
        // A framework that cuts parameters off what the server has decoded.
        case .framework: dots(merged(cut(decoded(path))))
        // A gateway in front of a servlet container: it decodes and sends on.
        case .gateway: dots(merged(decoded(cut(decoded(path)))))
        // A program that parses a URL, decodes its path and opens the file with that name.
        case .files: dots(merged(decoded(dots(path))))
        case .urlFiles: dots(merged(decoded(dots(encodedDots(path.replacing("\\", with: "/"))))))
        // A proxy that resolves dots, in front of what cuts parameters off: "..;a" is a segment like any other to the first.
        case .nginxThenServlet: dots(merged(cut(dots(merged(decoded(path))))))
        case .resolverThenServlet: dots(merged(decoded(cut(dots(path)))))
        case .resolverThenCutter: dots(cut(dots(encodedDots(path))))
        }
    }

    private func decoded(_ text: String) -> String {
        var result = ""
        var rest = Substring(text)
        while let first = rest.first {
            if first == "%", let code = UInt8(rest.dropFirst().prefix(2), radix: 16), rest.count > 2, code < 0x80 {
                result.unicodeScalars.append(UnicodeScalar(code))
                rest = rest.dropFirst(3)
            } else {
                result.append(first)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    private func cut(_ text: String) -> String {
        text.split(separator: "/", omittingEmptySubsequences: false).map { String($0.prefix { $0 != ";" }) }
            .joined(separator: "/")
    }

    private func merged(_ text: String) -> String {
        text.reduce(into: "") { if $1 != "/" || $0.last != "/" { $0.append($1) } }
    }

    private func encodedDots(_ text: String) -> String {
        text.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            let plain = segment.replacing("%2e", with: ".").replacing("%2E", with: ".")
            return plain == "." || plain == ".." ? String(plain) : String(segment)
        }.joined(separator: "/")
    }

    private func dots(_ text: String) -> String {
        var kept: [Substring] = []
        for segment in text.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            switch segment {
            case ".": break
            case "..": kept = kept.dropLast()
            default: kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }
}

@Suite("Whatever an origin takes a path for, no rule is passed by")
struct PathReaderTests {
    private static let pieces = [
        "private", "public", "x", "/", "/", "//", ".", "..", ";", ";a", "%2e", "%2E", "%2f", "%5c", "\\", "%3b",
        "%252f",
        "%252e", "%253b", "%255c", "%70", "/../", "/./", "/..;/", "/..;a/../", "%",
    ]

    @Test(arguments: 0..<400 as Range<UInt64>)
    func `a reader that reads a denied path is denied, and an allowed one reads no other`(
        _ seed: UInt64
    ) {
        var random = Seeded(state: seed)
        let deny = RuleConditionsTests.paths("/private/*", "/private")
        let allow = RuleConditionsTests.paths("/public/*")
        for _ in 0..<60 {
            let count = Int.random(in: 1...9, using: &random)
            let path = "/" + (0..<count).map { _ in Self.pieces.randomElement(using: &random)! }.joined()
            let isDenied = deny.holdForRequest(request(path: path), paths: .anySpelling)
            let isAllowed = allow.holdForRequest(request(path: path), paths: .everySpelling)
            for reader in Reader.allCases {
                let read = reader.read(path)
                if read == "/private" || read.hasPrefix("/private/") {
                    #expect(isDenied, "\(path) is \(read) to \(reader)")
                    #expect(!isAllowed, "\(path) is \(read) to \(reader)")
                }
                if isAllowed { #expect((read + "/").hasPrefix("/public/"), "\(path) is \(read) to \(reader)") }
            }
        }
    }

    private static let rulesOfCache: CacheRules = {
        func rule(_ number: Int, _ path: String, _ set: (inout HandlingChanges) -> Void) -> CacheRule {
            var rule = CacheRule(number: number)
            rule.conditions = RuleConditionsTests.paths(path)
            set(&rule.changes)
            return rule
        }
        return CacheRules(rules: [
            rule(1, "/public/*") {
                ($0.isImmutable, $0.authorization) = (true, .public)
            },
            rule(2, "/private/{package}") {
                ($0.release, $0.minimumAge) = (.npmIndex, MinimumAge(age: Seconds(60)))
            },
            rule(3, "/private/*") { $0.use = .noWrite },
        ])
    }()

    /// As the rules above have it: the package that a path asks for. Nothing but letters is the name of one here: how a pattern takes other signs apart
    /// is not what is tested.
    private static func package(_ read: String) -> String? {
        let parts = read.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "private", isName(parts[2]) else { return nil }
        return String(parts[2])
    }

    private static func isName(_ part: Substring) -> Bool { !part.isEmpty && part.allSatisfy(\.isLetter) }

    /// Below a package, where the third rule counts.
    private static func isDeeper(_ read: String) -> Bool {
        let parts = read.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count > 3 && parts[1] == "private" && parts.dropFirst(2).allSatisfy(isName)
    }

    @Test(arguments: 0..<400 as Range<UInt64>)
    func `what a rule of the cache restricts holds for each reader, and what it permits for all`(_ seed: UInt64) {
        var random = Seeded(state: seed)
        for _ in 0..<60 {
            let count = Int.random(in: 1...9, using: &random)
            let path = "/" + (0..<count).map { _ in Self.pieces.randomElement(using: &random)! }.joined()
            let request = request(path: path)
            let handling = Self.rulesOfCache.handling(of: request)
            let claim = Self.rulesOfCache.releaseClaim(on: request, handling)
            for reader in Reader.allCases {
                let read = reader.read(path)
                if handling.isImmutable || handling.authorization == .public {
                    #expect((read + "/").hasPrefix("/public/"), "\(path) is \(read) to \(reader)")
                }
                if Self.isDeeper(read) {
                    #expect(handling.use.contains(.noWrite), "\(path) is \(read) to \(reader)")
                }
                guard let package = Self.package(read) else { continue }
                switch claim {
                case .none: Issue.record("\(path) is \(read) to \(reader)")
                case .rule(let rule):
                    #expect(
                        rule.kind == .npmIndex && rule.package == package, "\(path) is \(read) to \(reader)")
                    #expect(handling.hasParticulars)
                case .unclear: break
                }
            }
        }
    }

    @Test(arguments: ["/", "/a/b", "/a.b/c-d_e~f", "/a,b/c:d@e", "/.well-known/x"]) func `most paths have one reading`(
        _ path: String
    ) {
        let isPlain = request(path: path).pathReadings == nil
        // A segment that begins with a dot is looked at, and has one reading as well.
        #expect(isPlain || path.contains("/."))
    }
}

private struct Seeded: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
