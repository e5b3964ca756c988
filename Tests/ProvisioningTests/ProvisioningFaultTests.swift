import EventLoop
import Foundation
import Provisioning
import Testing

/// What is wrong with files that a configuration names is said with the line and the key that names them.
@Suite("Provisioning: faults of what a configuration names")
struct ProvisioningFaultTests {
    struct Row: CustomTestStringConvertible {
        let text: String
        let fault: String
        var testDescription: String { fault }

        init(_ text: String, _ fault: String) {
            self.text = text
            self.fault = fault
        }
    }

    static let rows = [
        Row(
            "workers: 1\naccess:\n  authentication:\n    basic:\n      users: /nowhere/users\n",
            "x.yaml:5: access.authentication.basic.users: /nowhere/users cannot be read: \(systemErrorText(2))"),
        Row(
            "credentials:\n  - name: repo\n    scheme: basic\n    match: { host: repo.example.org }\n"
                + "    user: ann\n    password: { file: /nowhere/p }\n",
            "x.yaml:6: credentials[1].password: the file /nowhere/p cannot be read: \(systemErrorText(2))"),
        Row(
            "origins:\n  - match: { host: a.example }\n    tls:\n      ca_file: /nowhere/ca.pem\n",
            "x.yaml:4: origins[1].tls.ca_file: /nowhere/ca.pem cannot be read: \(systemErrorText(2))"),
        Row(
            "routes:\n  - match: { host: \"*\" }\n    pac: /nowhere/proxy.pac\n",
            "x.yaml:3: routes[1].pac: /nowhere/proxy.pac cannot be read: \(systemErrorText(2))"),
        Row(
            "intercept:\n  ca:\n    certificate: /nowhere/ca.pem\n    key: /nowhere/ca.key\n",
            "x.yaml:3: intercept.ca.certificate: /nowhere/ca.pem"),
    ]
    @Test(arguments: rows) func `a fault has its line and its key`(_ row: Row) throws {
        let reading = readConfiguration(text: Array(row.text.utf8), name: "x.yaml")
        let configuration = try #require(reading.configuration, "\(reading.errors)")
        let files = PACFiles { _, _, _, _ in }
        defer { files.close() }
        do throws(ProvisioningFault) {
            _ = try makeSnapshot(configuration, files)
            Issue.record("there is no such file")
        } catch {
            #expect("\(reading.problem(error))".hasPrefix(row.fault), "\(reading.problem(error))")
        }
    }

    static let keytabs: [(content: String?, said: String)] = [
        (nil, "http.keytab: \(systemErrorText(2)); requests with a token of Negotiate get 503 until it can be used"),
        ("", "requests with a token of Negotiate get 503 until it can be used"),
        ("no keytab", "requests with a token of Negotiate get 503 until it can be used"),
    ]
    @Test(arguments: keytabs) func `check warns of a keytab that cannot be used`(
        _ row: (content: String?, said: String)
    ) throws {
        let path = NSTemporaryDirectory() + "larder-keytab-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        if let content = row.content {
            try content.write(toFile: "\(path)/http.keytab", atomically: false, encoding: .utf8)
        }
        let text = "access:\n  authentication:\n    negotiate:\n      keytab: \(path)/http.keytab\n"
        var reading = readConfiguration(text: Array(text.utf8), name: "x.yaml")
        reading.checkPreparation { _, _, _, _ in }
        #expect(reading.configuration != nil, "\(reading.errors)")
        let warning = try #require(reading.warnings.first { $0.key == "access.authentication.negotiate.keytab" })
        #expect(warning.line == 4 && warning.description.contains(row.said), "\(warning)")
    }

    @Test func `what is no YAML and what is not there are errors of the reading`() {
        #expect("\(readConfiguration(text: Array("a: [".utf8), name: "x.yaml").errors)".contains("x.yaml:"))
        let missing = readConfiguration(file: "/nowhere/larder.yaml")
        #expect(missing.configuration == nil)
        #expect(missing.errors.map(\.description) == ["/nowhere/larder.yaml: cannot be read: \(systemErrorText(2))"])
    }

    @Test func `the defaults need no file`() {
        let reading = readDefaultConfiguration()
        #expect(reading.configuration != nil && reading.errors.isEmpty && reading.name == "built-in defaults")
    }
}
