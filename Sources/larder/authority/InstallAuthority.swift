import Glibc
import Provisioning
import TLS

extension AuthorityWork {
    /// `larder ca install [--undo]`: this machine's programs trust the roots of the authority, or no longer do.
    func install() throws {
        guard let store = SystemStore.find() else {
            throw AuthorityFailure(
                "this machine has no store of certificates that is known here (Debian, Ubuntu, Alpine, Fedora, Arch)",
                hint: "install the package ca-certificates, or add \(directory.root) by hand")
        }
        let before = store.files
        var written: [String] = []
        if !arguments.has(.undo) {
            let roots = try directory.roots(at: now)
            guard !roots.isEmpty else {
                throw AuthorityFailure("\(directory.path) has no root that is still valid")
            }
            for (index, root) in roots.prefix(SystemStore.rootsMax).enumerated() {
                try write(store.file(index), root.pem)
                written.append(store.file(index))
            }
        }
        let removed = before.filter { !written.contains($0) }
        for path in removed {
            guard unsafe unlink(path) == 0 else { throw FileError(path: path, code: errno) }
        }
        guard !written.isEmpty || !removed.isEmpty else { return tellInstalled(store, written, removed) }
        let status = runProgram(store.program, store.arguments)
        guard status == 0 else { throw AuthorityFailure("\(store.program) ended with status \(status)") }
        tellInstalled(store, written, removed)
    }

    private func write(_ path: String, _ bytes: [UInt8]) throws {
        do throws(FileError) {
            try replaceForAll(path, bytes)
        } catch {
            guard error.code == EACCES || error.code == EPERM else { throw error }
            throw AuthorityFailure(
                "\(error.path): only root may change this machine's store", hint: "run: sudo larder ca install")
        }
    }

    private func tellInstalled(_ store: SystemStore, _ written: [String], _ removed: [String]) {
        guard !arguments.has(.json) else {
            return printJSON { json in
                json.member("store", store.directory)
                json.strings("written", written)
                json.strings("removed", removed)
            }
        }
        for path in written { console.print("wrote    \(path)") }
        for path in removed { console.print("removed  \(path)") }
        if written.isEmpty && removed.isEmpty { return console.print("nothing to remove in \(store.directory)") }
        console.print("ran      \(store.program)")
        if !written.isEmpty {
            console.print(
                "Programs that use the system's store trust it now. Others have settings of their own: setup.sh of the proxy writes them."
            )
        }
    }
}
