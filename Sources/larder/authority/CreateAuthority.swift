import Message
import Rules
import TLS
import Texts

extension AuthorityWork {
    /// `larder ca create`: makes a root and an intermediate, or one for each `--node`. The root's key is written only where
    /// `--keep-root-key` says so.
    func create() throws {
        let constraints = try constraints()
        let nodes = try nodeNames()
        let days = try days()
        let root = try RootAuthority(constraints: constraints, at: now, days: days)
        var files = NewFiles()
        try directory.make()
        files.add(directory.root, root.certificate.pem)
        if nodes.isEmpty { try add(root.issue(node: nil, at: now, days: days), to: &files, in: directory) }
        for name in nodes {
            let place = directory.node(name)
            try place.make()
            files.add(place.root, root.certificate.pem)
            try add(root.issue(node: name, at: now, days: days), to: &files, in: place)
        }
        if let path = arguments[.keepRootKey] { files.add(path, root.keyPEM, mode: 0o600) }
        try files.write()
        tellCreated(root.certificate, files, nodes)
    }

    func add(_ issued: RootAuthority.Issued, to files: inout NewFiles, in place: AuthorityDirectory) {
        files.add(place.key, issued.key, mode: 0o600)
        files.add(place.intermediate, issued.certificates)
    }

    /// Names become file names and parts of subjects.
    func nodeNames() throws(UsageError) -> [String] {
        let names = arguments.all(.node)
        for name in names {
            guard (1...32).contains(name.utf8.count), name != "next", name.utf8.first != UInt8(ascii: "-"),
                name.utf8.allSatisfy({ isNodeNameByte($0) })
            else {
                throw UsageError(
                    "\"\(name)\" cannot be the name of a node",
                    hint: "a name has 1 to 32 letters, digits and hyphens, and is not \"next\"")
            }
        }
        guard Set(names).count == names.count else { throw UsageError("a node is named twice") }
        return names
    }

    private func isNodeNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"): true
        default: false
        }
    }

    private func tellCreated(_ root: CertificateDescription, _ files: NewFiles, _ nodes: [String]) {
        guard !arguments.has(.json) else {
            return printJSON { json in
                json.member("directory", directory.path)
                json.key("root")
                json.certificate(root, at: now)
                json.key("files")
                json.array { for path in files.paths { $0.string(path) } }
            }
        }
        let key =
            arguments[.keepRootKey].map { "its key is in \($0): keep it off this machine" }
            ?? "its key was never written and is gone"
        console.print("root         \(root.subject); \(key)")
        console.print("sha256       \(root.fingerprint)")
        console.print("valid until  \(dateText(root.notAfter))")
        console.print("may certify  \(root.scopeText)")
        for path in files.paths { console.print("wrote        \(path)") }
        console.print("")
        if nodes.isEmpty {
            console.print("Add to larder.yaml:\n")
            console.print(configurationLines(directory))
        } else {
            console.print("Copy each node its own directory, with its owner and mode, and add there to larder.yaml:\n")
            console.print(configurationLines(AuthorityDirectory(AuthorityDirectory.usual)))
        }
        console.print("\nIf Larder runs as another user: chown -R USER \(shellWord(directory.path))")
        console.print("Then restart Larder, and on each client:")
        console.print("  curl -fsS http://PROXY:3128/setup.sh | sh -s -- --ca-sha256 \(root.fingerprint)")
        if nodes.isEmpty { console.print("This machine itself: larder ca install") }
    }

    private func configurationLines(_ place: AuthorityDirectory) -> String {
        let hosts = arguments.all(.host).map(yamlQuoted).joined(separator: ", ")
        return """
            intercept:
              ca: { certificate: \(yamlName(place.intermediate)), key: \(yamlName(place.key)) }
              hosts: [ \(hosts.isEmpty ? "…" : hosts) ]
            """
    }
}
