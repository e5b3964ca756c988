import TLS

extension AuthorityWork {
    /// `larder ca issue --node NAME --root-key FILE`: an intermediate for another machine, from a root whose key was kept. A node that
    /// was broken into can then be replaced without the others.
    func issue() throws {
        let names = try nodeNames()
        guard !names.isEmpty else { throw UsageError("issue needs --node NAME") }
        guard let keyFile = arguments[.rootKey] else {
            throw UsageError(
                "issue needs --root-key FILE",
                hint:
                    "create destroys the root's key unless it gets --keep-root-key FILE, or names all nodes: create --node a --node b"
            )
        }
        let root = try RootAuthority(certificateFile: directory.root, keyFile: keyFile, at: now)
        var files = NewFiles()
        var issued: [CertificateDescription] = []
        for name in names {
            let place = directory.node(name)
            try place.make()
            let made = try root.issue(node: name, at: now, days: days())
            files.add(place.root, root.certificate.pem)
            add(made, to: &files, in: place)
            issued.append(made.description)
        }
        try files.write()
        guard !arguments.has(.json) else {
            return printJSON { json in
                json.member("directory", directory.path)
                json.key("issued")
                json.array { for certificate in issued { $0.certificate(certificate, at: now) } }
                json.strings("files", files.paths)
            }
        }
        for certificate in issued {
            console.print("issued       \(certificate.subject), \(certificate.validityText(at: now))")
        }
        console.print("may certify  \(root.certificate.scopeText)")
        for path in files.paths { console.print("wrote        \(path)") }
    }
}
