import EventLoop
import Foundation
import Server
import Storage
import Testing

@testable import Provisioning
@testable import Settings

/// Each way in which the machine keeps `serve` from starting, and what `check` says about it.
@Suite("Provisioning: check finds what keeps the proxy from starting")
struct StartCheckTests {
    /// `DIR` is a directory of the test.
    struct Row: CustomTestStringConvertible {
        /// Of `Proxy.StartError`, or `admin`.
        let kind: String
        let name: String
        let key: String
        let text: String
        let message: String
        var hint: String?
        var prepare: @Sendable (String) throws -> Void = { _ in }
        var testDescription: String { name }
    }

    private static func makeDirectory(_ path: String, mode: Int = 0o700) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private static func write(_ text: String, _ path: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    private static func link(_ path: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
    }

    private static let disk = "cache: { disk: { path: DIR/store, size: 1GiB } }"

    static let rows: [Row] = [
        Row(
            kind: "log", name: "the access log is a directory", key: "log.access", text: "log: { access: DIR/logs }",
            message: "DIR/logs cannot be opened: Is a directory", hint: "name a file in it, such as DIR/logs/access.log"
        ) { try makeDirectory("\($0)/logs") },
        Row(
            kind: "log", name: "the path of the access log ends in a slash", key: "log.access",
            text: "log: { access: DIR/logs/ }", message: "DIR/logs/ cannot be opened: Is a directory"),
        Row(
            kind: "log", name: "the directory of the access log is missing", key: "log.access",
            text: "log: { access: DIR/none/log }", message: "DIR/none/log cannot be opened: No such file or directory",
            hint: "make the directory DIR/none"),
        Row(
            kind: "log", name: "the access log is a link into a directory that is missing", key: "log.access",
            text: "log: { access: DIR/link }", message: "DIR/link cannot be opened: No such file or directory"
        ) { try link("\($0)/link", to: "none/log") },
        Row(
            kind: "log", name: "the directory of the access log is a file", key: "log.access",
            text: "log: { access: DIR/file/log }", message: "DIR/file/log cannot be opened: Not a directory"
        ) { try write("x", "\($0)/file") },
        Row(
            kind: "logInDisk", name: "the access log lies in the directory of the disk", key: "log.access",
            text: "\(disk)\nlog: { access: DIR/store/access.log }",
            message:
                "DIR/store/access.log lies in the directory of the disk of zone default, which may hold nothing else",
            hint: "write the log to another directory"
        ) { try makeDirectory("\($0)/store") },
        Row(
            kind: "logInDisk", name: "the access log lies in the directory of a disk that is not made yet",
            key: "log.access",
            text: "\(disk)\nlog: { access: DIR//store/access.log }", message: "lies in the directory of the disk"),
        Row(
            kind: "disk", name: "the directory of the disk has other files", key: "cache.disk.path", text: disk,
            message: "the disk tier cannot be opened: DIR/store contains other files and is not a store of Larder",
            hint: "name a directory that is empty, or one that Larder can make in a directory that exists"
        ) {
            try makeDirectory("\($0)/store")
            try write("x", "\($0)/store/other")
        },
        Row(
            kind: "disk", name: "the marker of the store is another file", key: "cache.disk.path", text: disk,
            message: "contains other files"
        ) {
            try makeDirectory("\($0)/store")
            try write("x", "\($0)/store/larder-store")
        },
        Row(
            kind: "disk", name: "the store has another format", key: "cache.disk.path", text: disk,
            message: "has format 99, which this version does not know"
        ) {
            try makeDirectory("\($0)/store")
            try write("larder store 99\n", "\($0)/store/larder-store")
        },
        Row(
            kind: "disk", name: "the directory of the disk is a link to nothing", key: "cache.disk.path", text: disk,
            message: "DIR/store: No such file or directory"
        ) { try link("\($0)/store", to: "none") },
        Row(
            kind: "disk", name: "the directory of the disk cannot be made", key: "cache.disk.path",
            text: "cache: { disk: { path: DIR/none/store, size: 1GiB } }",
            message: "DIR/none/store: No such file or directory"),
        Row(
            kind: "disk", name: "the directory of the disk is a file", key: "cache.disk.path", text: disk,
            message: "DIR/store: Not a directory"
        ) { try write("x", "\($0)/store") },
        Row(
            kind: "disk", name: "others can write to the directory of the disk", key: "cache.disk.path", text: disk,
            message: "DIR/store can be written by other users (mode 777): run chmod go-w"
        ) { try makeDirectory("\($0)/store", mode: 0o777) },
        Row(
            kind: "disk", name: "the directory of a zone's disk has other files", key: "cache.zones[1].disk.path",
            text:
                "cache: { disk: { size: 0 }, zones: [ { name: z, memory: 16MiB, disk: { path: DIR/z, size: 1GiB } } ] }",
            message: "DIR/z contains other files"
        ) {
            try makeDirectory("\($0)/z")
            try write("x", "\($0)/z/other")
        },
        Row(
            kind: "listen", name: "the directory of a Unix socket is missing", key: "listen",
            text: "listen: \"unix:DIR/none/s\"",
            message: "cannot listen on unix:DIR/none/s: bind: No such file or directory",
            hint: "make the directory of the socket, or change listen"),
        Row(
            kind: "listen", name: "the path of a Unix socket is that of a file", key: "listen[2]",
            text: "listen: [ \"127.0.0.1:0\", \"unix:DIR/file\" ]",
            message: "there is a file with this path that is no socket",
            hint: "remove the file, or set listen to another path"
        ) { try write("x", "\($0)/file") },
        Row(
            kind: "listen", name: "a listener has the address of another machine", key: "listen",
            text: "listen: \"192.0.2.1:3128\"\naccess: { clients: 10.0.0.0/8 }",
            message: "cannot listen on 192.0.2.1:3128: bind: Cannot assign requested address",
            hint: "no interface of this machine has this address: change listen"),
        Row(
            kind: "admin", name: "the admin server has the address of another machine", key: "admin.address",
            text: "admin: { address: \"192.0.2.1:3129\", token: DIR/token }",
            message: "cannot listen on 192.0.2.1:3129: bind: Cannot assign requested address",
            hint: "no interface of this machine has this address: change admin.address"
        ) { try write(String(repeating: "t", count: 32), "\($0)/token") },
    ]

    private func with(_ row: Row, _ body: (ConfigurationReading, String) throws -> Void) throws {
        // Short, for the path of a socket.
        let path = "/tmp/lsc-\(UUID().uuidString.prefix(8))"
        try Self.makeDirectory(path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try row.prepare(path)
        var text = "workers: 1\n\(row.text.replacingOccurrences(of: "DIR", with: path))\n"
        if !row.text.contains("listen:") { text += "listen: \"127.0.0.1:0\"\n" }
        if !row.text.contains("cache:") { text += "cache: { disk: { size: 0 } }\n" }
        if !row.text.contains("admin:") { text += "admin: { address: off, socket: off }\n" }
        let reading = readConfiguration(text: Array(text.utf8), name: "x.yaml")
        try #require(reading.configuration != nil, "\(reading.errors)")
        let before = try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
        try body(reading, path)
        #expect(
            try FileManager.default.subpathsOfDirectory(atPath: path).sorted() == before, "nothing is made or removed")
    }

    @Test(arguments: rows) func `check names the setting, what is wrong and what to do, and changes nothing`(_ row: Row)
        throws
    {
        try with(row) { reading, path in
            var reading = reading
            reading.checkPreparation { _, _, _, _ in }
            try #require(reading.errors.count == 1, "\(reading.errors)")
            let error = reading.errors[0]
            #expect(error.key == row.key && error.line >= 2, "\(error)")
            #expect(error.message.contains(row.message.replacingOccurrences(of: "DIR", with: path)), "\(error)")
            if let hint = row.hint { #expect(error.hint == hint.replacingOccurrences(of: "DIR", with: path)) }
        }
    }

    @Test(arguments: rows) func `serve refuses it in the same words`(_ row: Row) throws {
        try with(row) { reading, _ in
            var checked = reading
            checked.checkPreparation { _, _, _, _ in }
            let files = PACFiles { _, _, _, _ in }
            defer { files.close() }
            let refusal = #expect(throws: (any Error).self) { _ = try startProxy(reading, files) }
            let configuration = try #require(reading.configuration)
            let fault =
                (refusal as? ProvisioningFault)
                ?? (refusal as? Proxy.StartError)?.fault(configuration, isFromFile: true)
            #expect(fault.map { "\(reading.problem($0))" } == checked.errors.first.map { "\($0)" })
        }
    }

    /// The kind of an error for which there are rows. Nil: `check` cannot find it.
    private func kind(_ error: Proxy.StartError) -> String? {
        switch error {
        case .listen: "listen"
        case .log: "log"
        case .logInDisk: "logInDisk"
        case .disk: "disk"
        // The service manager passes sockets to `serve` alone.
        case .notInherited, .unguarded: nil
        // Threads, descriptors and memory are those of the moment.
        case .worker: nil
        }
    }

    @Test func `each error of a start that check can find has a row`() {
        let errors: [Proxy.StartError] = [
            .listen(index: 0, address: "", .addressInUse), .log(path: "", errno: 0), .logInDisk(path: "", zone: ""),
            .disk(BackStoreRefusal(path: "", isInUse: false, "")), .notInherited(index: 0, address: ""),
            .unguarded(index: 0, address: ""), .worker(""),
        ]
        #expect(Set(errors.compactMap(kind) + ["admin"]) == Set(Self.rows.map(\.kind)))
    }

    @Test func `the address at which other nodes ask is one of this machine`() throws {
        let text = """
            fleet: { redis: { url: "redis://r" }, secret_file: /nowhere/s, peers: [ "192.0.2.1:3130" ],
              node: { peer: { address: "192.0.2.1:3130", certificate: /nowhere/c, key: /nowhere/k, ca: /nowhere/a } } }
            """
        var reading = readConfiguration(text: Array(text.utf8), name: "x.yaml")
        try #require(reading.configuration != nil, "\(reading.errors)")
        reading.checkPreparation { _, _, _, _ in }
        let found = reading.errors.first { $0.key == "fleet.node.peer.address" }
        #expect(found?.message == "cannot listen on 192.0.2.1:3130: bind: Cannot assign requested address")
        #expect(found?.hint == "no interface of this machine has this address: change fleet.node.peer.address")
    }

    @Test func `what another process holds now is no error: it may be the Larder that runs`() throws {
        let path = "/tmp/lsc-\(UUID().uuidString.prefix(8))"
        try Self.makeDirectory(path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let first = readConfiguration(
            text: Array(
                "workers: 1\nlisten: [ \"127.0.0.1:0\", \"unix:\(path)/s\" ]\ncache: { disk: { path: \(path)/d, size: 1GiB } }"
                    .utf8),
            name: "x.yaml")
        let files = PACFiles { _, _, _, _ in }
        defer { files.close() }
        let proxy = try startProxy(first, files).proxy
        defer {
            proxy.stop()
            proxy.join()
        }
        let port = try #require(proxy.addresses.first?.port)
        var second = readConfiguration(
            text: Array(
                "listen: [ \"127.0.0.1:\(port)\", \"unix:\(path)/s\" ]\ncache: { disk: { path: \(path)/d, size: 1GiB } }\nlog: { access: \(path)/d/access.log }"
                    .utf8), name: "x.yaml")
        second.checkPreparation { _, _, _, _ in }
        // A store stays one, whatever lies beside it.
        #expect(second.errors.isEmpty, "\(second.errors)")
    }
}
