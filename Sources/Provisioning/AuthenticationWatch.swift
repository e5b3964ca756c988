import Access
package import EventLoop
package import Server

/// Reads the files of `access.authentication` again when they change. Runs on the control thread.
///
/// A file that has just changed may not be whole yet: it is read when it has stayed the same for a pause. If it cannot be used, the earlier
/// version stays in use, and the log says so once.
package final class AuthenticationWatch {
    private let proxy: Proxy
    private let loop: EventLoop
    private var timer: Timer?
    private var snapshot: Snapshot?
    private var files: [WatchedFile] = []
    private var mustRead = false
    /// What was said last.
    private var complaint: String?

    package static let pause: Duration = .seconds(2)

    package init(_ proxy: Proxy, on loop: EventLoop) {
        self.proxy = proxy
        self.loop = loop
    }

    package func start() {
        let timer = Timer { [unowned self] in
            look()
            schedule()
        }
        self.timer = timer
        schedule()
    }

    package func stop() { if let timer { loop.timers.cancel(timer) } }

    private func schedule() { if let timer { loop.timers.schedule(timer, after: AuthenticationWatch.pause) } }

    private func look() {
        let snapshot = proxy.snapshot
        if self.snapshot !== snapshot {
            // They may have changed since the configuration was read: they are read once more, and compared.
            self.snapshot = snapshot
            files = snapshot.configuration.access.authentication.files.map {
                WatchedFile($0, pause: .zero, now: loop.now)
            }
            mustRead = !files.isEmpty
            return
        }
        var haveChanged = false
        for index in files.indices where files[index].hasChanged(at: loop.now) { haveChanged = true }
        if haveChanged {
            mustRead = true
        } else if mustRead {
            mustRead = false
            read(snapshot)
        }
    }

    private func read(_ snapshot: Snapshot) {
        let settings = snapshot.configuration.access.authentication
        do throws(ProvisioningFault) {
            let material = try readAuthentication(settings)
            complaint = nil
            guard material != snapshot.authenticators.material else { return }
            proxy.adopt(material, in: snapshot)
            Diagnostics.info("the users of access.authentication have changed and were read")
            for remark in remarks(on: material, settings) { Diagnostics.warning(remark) }
        } catch {
            guard complaint != error.description else { return }
            complaint = error.description
            Diagnostics.warning("\(error); the earlier users stay in use")
        }
    }
}
