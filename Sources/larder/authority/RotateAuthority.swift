import Glibc
import Provisioning
import TLS

/// Replacing an authority takes two steps, because clients must trust the next root before a leaf comes from it.
///
/// 1. `rotate` makes the next authority in `next/` and adds its root to `intermediate.pem`. Larder goes on signing with the old one and
///    hands out both roots.
/// 2. `rotate --finish` puts the next authority in place. The old root is handed out until it ends, for other nodes and old leaves.
extension AuthorityWork {
    func rotate() throws {
        switch (arguments.has(.finish), arguments.has(.undo)) {
        case (true, true): throw UsageError("--finish and --undo contradict each other")
        case (true, false): try finishRotation()
        case (false, true): try undoRotation()
        case (false, false): try startRotation()
        }
    }

    private func startRotation() throws {
        let old = try directory.certificates()
        guard old[0].subject.hasSuffix("O=Larder") else {
            throw AuthorityFailure(
                "\(directory.intermediate) was not made by larder ca create: \(old[0].subject)",
                hint: "replace its files yourself: first add the next root to them, and reload")
        }
        let next = directory.next
        guard !fileExists(next.intermediate) else {
            throw AuthorityFailure(
                "a rotation is under way: \(next.path) has the next authority",
                hint: "larder ca rotate --finish uses it, larder ca rotate --undo removes it")
        }
        // The constraints of an unconstrained authority need no decision again.
        let isFree = old[0].constraints == nil && arguments.all(.host).isEmpty
        let constraints = isFree ? nil : try constraints(keeping: old[0].constraints)
        let days = try days()
        let root = try RootAuthority(constraints: constraints, at: now, days: days)
        try next.make()
        var files = NewFiles()
        files.add(next.root, root.certificate.pem)
        try add(root.issue(node: nil, at: now, days: days), to: &files, in: next)
        try files.write()
        try replaceFile(directory.intermediate, with: pem(old + [root.certificate]))
        let fingerprints = (old.filter(\.isSelfSigned) + [root.certificate]).map(\.fingerprint).joined(separator: ",")
        try report("next", root.certificate, files.paths + [directory.intermediate]) {
            console.print("Larder still signs with the old authority. Now:")
            console.print("1. Reload Larder (SIGHUP): it hands out both roots.")
            console.print("2. On each client: setup.sh again, or /ca.pem of the proxy.")
            console.print(
                "   curl -fsS http://PROXY:3128/setup.sh | sh -s -- --ca-sha256 \(fingerprints)")
            console.print("3. Before \(dateText(old[0].notAfter)), when all clients have it: larder ca rotate --finish")
        }
    }

    /// May be repeated after it was interrupted: `next/` is removed last.
    private func finishRotation() throws {
        let next = directory.next
        guard fileExists(next.intermediate) else {
            throw AuthorityFailure(
                "there is no rotation to finish: \(next.path) is missing", hint: "larder ca rotate starts one")
        }
        let new = try next.certificates()
        guard let newRoot = new.first(where: \.isSelfSigned) else {
            throw AuthorityError.noCertificate(path: next.root)
        }
        let others = try directory.certificates().filter { old in
            old.isSelfSigned && old.notAfter > now && !new.contains { $0.sha256 == old.sha256 }
        }
        if let previous = others.last { try replaceForAll(directory.previousRoot, previous.pem) }
        try replaceFile(directory.key, with: next.read(next.key))
        try replaceFile(directory.intermediate, with: pem(new + others))
        try replaceFile(directory.root, with: newRoot.pem)
        removeNext()
        try report("root", newRoot, [directory.root, directory.key, directory.intermediate]) {
            console.print("Restart or reload Larder (SIGHUP): it signs with the new authority from then on.")
            for root in others {
                console.print(
                    "The old root (\(root.fingerprint.prefix(16))…) is handed out until \(dateText(root.notAfter)).")
            }
        }
    }

    private func undoRotation() throws {
        let next = directory.next
        guard fileExists(next.intermediate) else { throw AuthorityFailure("there is no rotation to undo") }
        let new = try next.certificates()
        let kept = try directory.certificates().filter { old in !new.contains { $0.sha256 == old.sha256 } }
        guard !kept.isEmpty else {
            throw AuthorityFailure("the next authority is in use already", hint: "run: larder ca rotate --finish")
        }
        try replaceFile(directory.intermediate, with: pem(kept))
        removeNext()
        try report("issuer", kept[0], [directory.intermediate]) {
            console.print("The next authority is removed. Clients that trust its root need not; its key is gone.")
        }
    }

    private func removeNext() {
        for path in directory.next.files { _ = unsafe unlink(path) }
        _ = unsafe rmdir(directory.next.path)
    }

    private func pem(_ certificates: [CertificateDescription]) -> [UInt8] { certificates.flatMap(\.pem) }

    private func report(
        _ role: String, _ certificate: CertificateDescription, _ files: [String], _ nextSteps: () -> Void
    ) throws {
        guard !arguments.has(.json) else {
            return printJSON { json in
                json.member("directory", directory.path)
                json.key(role)
                json.certificate(certificate, at: now)
                json.strings("files", files)
            }
        }
        console.print("\(padded(role, 13))\(certificate.subject)")
        console.print("sha256       \(certificate.fingerprint)")
        console.print("valid        \(certificate.validityText(at: now))")
        console.print("may certify  \(certificate.scopeText)")
        for path in files { console.print("wrote        \(path)") }
        console.print("")
        nextSteps()
    }
}
