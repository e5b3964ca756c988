import Access
import Foundation
import Message
import Provisioning
import Rules
import Testing

@Suite("Provisioning: what access rules name")
struct NamedListTests {
    private func directory(_ files: [String: String]) throws -> String {
        let path = NSTemporaryDirectory() + "larder-lists-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for (name, text) in files { try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8) }
        return path
    }

    private func reading(_ rules: String...) -> ConfigurationReading {
        let text = "access:\n  rules:\n" + rules.map { "    - \($0)\n" }.joined()
        return readConfiguration(text: Array(text.utf8), name: "x.yaml")
    }

    @Test func `files are read, and shown with their counts`() throws {
        let path = try directory(["hosts": "a.example\n*.b.example\n", "nets": "10.0.0.0/8\n"])
        defer { try? FileManager.default.removeItem(atPath: path) }
        var reading = reading(
            "deny: { host: { file: \(path)/hosts }, client: { file: \(path)/nets } }",
            "deny: { host: { file: \(path)/hosts } }")
        reading.checkPreparation { _, _, _, _ in }
        let access = try #require(reading.configuration?.access)
        #expect(
            access.rules[0].conditions.parts.map(\.values) == [
                ["\(path)/hosts (2 entries)"], ["\(path)/nets (1 entry)"],
            ])
        #expect(access.listFiles == ["\(path)/hosts", "\(path)/nets"])
        let host = try #require(DestinationHost(Array("x.b.example".utf8)))
        #expect(access.rules[1].conditions.hostLists[0].content.contains(host))
    }

    @Test func `a list that has not changed is not read again`() throws {
        let path = try directory(["hosts": "a.example\n", "nets": "10.0.0.0/8\n"])
        defer { try? FileManager.default.removeItem(atPath: path) }
        let rules = reading(
            "deny: { host: { file: \(path)/hosts }, client: { file: \(path)/nets } }",
            "deny: { host: { file: \(path)/hosts } }")
        let access = try #require(rules.configuration?.access)
        // Files that changed a moment ago may change once more without a difference that anybody sees. So this is later.
        let now = try seconds(of: "\(path)/hosts") + 10
        var first = ListReading(now: now)
        let known = try first.filled(access)
        #expect(first.filesRead == ["\(path)/hosts", "\(path)/nets"])
        var second = ListReading(after: known, now: now)
        #expect(try second.filled(access) == known)
        #expect(second.filesRead == [])
        // The same size, and other names.
        try "b.example\n".write(toFile: "\(path)/hosts", atomically: true, encoding: .utf8)
        var third = ListReading(after: known, now: now)
        let changed = try third.filled(access)
        #expect(third.filesRead == ["\(path)/hosts"])
        for rule in changed.rules {
            let content = rule.conditions.hostLists[0].content
            #expect(content.contains(try #require(DestinationHost(Array("b.example".utf8)))))
            #expect(!content.contains(try #require(DestinationHost(Array("a.example".utf8)))))
        }
        // Right after a change nothing is taken for known.
        var early = ListReading(now: now - 10)
        let unsettled = try early.filled(access)
        var again = ListReading(after: unsettled, now: now)
        _ = try again.filled(access)
        #expect(again.filesRead == ["\(path)/hosts", "\(path)/nets"])
    }

    /// When a file changed last.
    private func seconds(of path: String) throws -> Int {
        let date = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
        return Int(try #require(date).timeIntervalSince1970)
    }

    @Test func `a fault names rule, file and line`() throws {
        let path = try directory(["hosts": "a.example\nhttp://b.example\n"])
        defer { try? FileManager.default.removeItem(atPath: path) }
        var wrong = reading("deny: { host: { file: \(path)/hosts } }")
        wrong.checkPreparation { _, _, _, _ in }
        #expect(wrong.configuration == nil)
        #expect(
            wrong.errors.map(\.description) == [
                "x.yaml:3: access.rules[1].deny.host: \(path)/hosts:2: \"http://b.example\" is not a host name, *.name or an address"
            ])
        var missing = reading("deny: { host: { file: \(path)/none } }")
        missing.checkPreparation { _, _, _, _ in }
        #expect(missing.errors.map(\.message) == ["\(path)/none: No such file or directory"])
    }

    static let suffixes: [(rule: String, error: String?, warnings: [String])] = [
        ("allow: { host: \"*.com\" }", "*.com allows every name that anybody registers below com", []),
        ("allow: { host: \"*.co.uk\" }", "*.co.uk allows every name that anybody registers below co.uk", []),
        ("allow: { host: \"*.github.io\" }", "*.github.io allows every name that anybody can have below github.io", []),
        (
            "allow: { host: \"*.github.io\", port: 443 }",
            "*.github.io allows every name that anybody can have below github.io", []
        ),
        (
            "allow: { host: \"*.github.io\", method: [ GET, CONNECT ] }",
            "*.github.io allows every name that anybody can have below github.io", []
        ),
        (
            "allow: { host: \"*.github.io\", method: CONNECT }",
            "*.github.io allows every name that anybody can have below github.io", []
        ),
        ("allow: { host: \"*.github.io\", shared: yes }", nil, []),
        (
            "allow: { host: \"*.github.io\", shared: no }",
            "*.github.io allows every name that anybody can have below github.io", []
        ),
        ("allow: { host: \"*.com\", shared: yes }", "*.com allows every name that anybody registers below com", []),
        ("allow: { host: \"*.a.github.io\" }", nil, []),
        (
            "allow: { host: \"*.github.io\", method: [ GET, HEAD ] }", nil,
            ["*.github.io: anybody can have a name below github.io"]
        ),
        ("allow: { host: \"*.github.io\", path: /x }", nil, ["*.github.io: anybody can have a name below github.io"]),
        ("allow: { host: \"*.example.com\" }", nil, []), ("allow: { host: a.github.io }", nil, []),
        ("allow: { host: \"*.internal\" }", nil, []), ("allow: { host: \"*\" }", nil, []),
        ("deny: { host: \"*.com\" }", nil, []), ("allow: { host: \"*.com\", report: yes }", nil, []),
        (
            "allow: { host: github.com }", nil,
            ["github.com: anybody can publish and collect data on this host"]
        ),
        ("allow: { host: github.com, path: \"/ours/*\" }", nil, []),
        ("allow: { host: github.com, method: GET }", nil, []),
        (
            "allow: { host: s3.amazonaws.com }", nil,
            ["s3.amazonaws.com: anybody can publish and collect data on this host"]
        ),
    ]
    @Test(arguments: suffixes.indices) func `what belongs to others`(_ index: Int) {
        let row = Self.suffixes[index]
        var reading = reading(row.rule)
        reading.checkOpenHosts()
        #expect(reading.errors.map(\.message) == (row.error.map { [$0] } ?? []))
        #expect(reading.warnings.map(\.message) == row.warnings)
        #expect(
            (reading.errors + reading.warnings).allSatisfy { $0.key == "access.rules[1].allow.host" && $0.line == 3 })
        #expect((reading.configuration == nil) == (row.error != nil))
    }

    @Test func `a wildcard in a file counts like one in the rule`() throws {
        let path = try directory(["hosts": "a.example\n*.org\n"])
        defer { try? FileManager.default.removeItem(atPath: path) }
        var reading = reading("allow: { host: { file: \(path)/hosts } }")
        reading.checkPreparation { _, _, _, _ in }
        #expect(
            reading.errors.map(\.message) == [
                "*.org in \(path)/hosts allows every name that anybody registers below org"
            ])
    }
}
