package import Access
import Accounts
package import EventLoop
import Glibc
import Rules
package import Server

/// Reads the files with values of `access.rules`. Each file is read once for each kind of value, however many rules name it, and not at all if the
/// settings in force have its present version.
package struct ListReading {
    /// The clock, in seconds since 1970.
    private let now: Int
    private var hosts: KnownLists<HostSet>
    private var addresses: KnownLists<AddressIndex>
    private var names: KnownLists<Set<String>>
    private var zones = TimeZones()

    /// - Parameters:
    ///   - earlier: the settings in force.
    ///   - now: the clock, in seconds since 1970.
    package init(after earlier: AccessSettings? = nil, now: Int = time(nil)) {
        self.now = now
        let conditions = earlier?.rules.map(\.conditions) ?? []
        hosts = KnownLists(conditions.flatMap(\.hostLists))
        addresses = KnownLists(conditions.flatMap { $0.addressLists + $0.clientLists })
        names = KnownLists(conditions.flatMap(\.userLists))
    }

    /// The files that were read, in order.
    package var filesRead: [String] { Set(hosts.filesRead + addresses.filesRead + names.filesRead).sorted() }

    /// The settings with the contents of their files. Throws the first fault. Blocks.
    package mutating func filled(_ settings: AccessSettings) throws(ProvisioningFault) -> AccessSettings {
        try Preparation.throwing { preparation throws(ProvisioningFault) in try filled(settings, &preparation) }
    }

    /// The settings with the contents of their files. A list with a fault stays empty. Blocks.
    mutating func filled(
        _ settings: AccessSettings, _ preparation: inout Preparation
    ) throws(ProvisioningFault) -> AccessSettings {
        var settings = settings
        for index in settings.rules.indices {
            let conditions = settings.rules[index].conditions
            guard !conditions.listFiles.isEmpty || conditions.details.zone != nil else { continue }
            try fill(&settings.rules[index], &preparation)
        }
        return settings
    }

    private mutating func fill(
        _ rule: inout AccessRule, _ preparation: inout Preparation
    ) throws(ProvisioningFault) {
        let action =
            switch rule.effect {
            case .allow: "allow"
            case .deny: "deny"
            case .redirect: "redirect"
            case .authenticate: "authenticate"
            }
        let key = "access.rules[\(rule.number)].\(action)"
        try hosts.fill(&rule.conditions.hostLists, "\(key).host", now, ListText.hosts, &preparation)
        try addresses.fill(
            &rule.conditions.addressLists, "\(key).address", now, ListText.addresses, &preparation)
        try addresses.fill(&rule.conditions.clientLists, "\(key).client", now, ListText.addresses, &preparation)
        try names.fill(&rule.conditions.userLists, "\(key).user", now, ListText.names, &preparation)
        guard let zone = rule.conditions.details.zone else { return }
        rule.conditions.details.zone?.data =
            try preparation.attempt { () throws(ProvisioningFault) in
                try zones.data(of: zone.name, "\(key).zone")
            } ?? zone.data
    }
}

/// Lists of one kind by their files.
private struct KnownLists<Content: Sendable & Equatable> {
    private var earlier: [String: ListFile<Content>] = [:]
    /// Those whose version was looked at now.
    private var present: [String: ListFile<Content>] = [:]
    private(set) var filesRead: [String] = []

    init(_ lists: [ListFile<Content>]) {
        for list in lists where list.stamp != nil { earlier[list.file] = list }
    }

    mutating func fill(
        _ lists: inout [ListFile<Content>], _ key: String, _ now: Int,
        _ parse: ([UInt8]) throws(ListText.Fault) -> Content, _ preparation: inout Preparation
    ) throws(ProvisioningFault) {
        for index in lists.indices {
            let file = lists[index].file
            if let known = present[file] {
                lists[index] = known
                continue
            }
            // A change that comes while the file is read changes the stamp as well, and is seen the next time.
            let stamp = FileStamp(of: file, now: now)
            if let stamp, let known = earlier[file], known.stamp == stamp {
                lists[index] = known
            } else {
                let content = try preparation.attempt { () throws(ProvisioningFault) in
                    try readList(file, key, parse)
                }
                guard let content else { continue }
                lists[index].content = content
                lists[index].stamp = stamp
                filesRead.append(file)
            }
            present[file] = lists[index]
        }
    }
}

private func readList<Content>(
    _ file: String, _ key: String, _ parse: ([UInt8]) throws(ListText.Fault) -> Content
) throws(ProvisioningFault) -> Content {
    let text: [UInt8]
    do throws(FileError) {
        text = try readFile(file, bytesMax: listBytesMax)
    } catch { throw ProvisioningFault(key, error.text) }
    do throws(ListText.Fault) { return try parse(text) } catch { throw ProvisioningFault(key, "\(file):\(error)") }
}

/// The most bytes that a file with values can have.
private let listBytesMax = 256 << 20

extension FileStamp {
    /// Nil if the file is not there, or if it changed a moment ago: the clock of the file system is coarse, so that another change might get the same stamp.
    fileprivate init?(of path: String, now: Int) {
        var status = stat()
        guard unsafe stat(path, &status) == 0, now - max(status.st_mtim.tv_sec, status.st_ctim.tv_sec) > 1 else {
            return nil
        }
        func nanoseconds(_ time: timespec) -> Int64 {
            Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue &+ Int64(time.tv_nsec)
        }
        self.init(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            modified: nanoseconds(status.st_mtim), changed: nanoseconds(status.st_ctim))
    }
}

/// `access` with its files read, and with what they open found harmless.
package struct ReadAccess: Sendable {
    package let settings: AccessSettings

    /// Blocks: half a million names take half a second.
    package init(_ settings: AccessSettings, after earlier: AccessSettings?) throws(ProvisioningFault) {
        self = try Preparation.throwing { preparation throws(ProvisioningFault) in
            try ReadAccess(settings, after: earlier, &preparation)
        }
    }

    /// Blocks. What hosts are doubtful is a remark of a check.
    init(
        _ settings: AccessSettings, after earlier: AccessSettings?, _ preparation: inout Preparation
    ) throws(ProvisioningFault) {
        var reading = ListReading(after: earlier)
        let filled = try reading.filled(settings, &preparation)
        self.settings = filled
        let hosts = try preparation.attempt { () throws(ProvisioningFault) in try OpenHosts(filled) }
        if preparation.isCheck, let hosts { for warning in hosts.warnings { preparation.remark(warning) } }
    }

    /// What `init` makes or throws.
    fileprivate static func reading(
        _ settings: AccessSettings, after earlier: AccessSettings?
    ) -> Result<ReadAccess, ProvisioningFault> {
        do throws(ProvisioningFault) {
            return .success(try ReadAccess(settings, after: earlier))
        } catch { return .failure(error) }
    }
}

extension AccessSettings {
    /// The files that rules name, each once.
    ///
    /// Asked every two seconds: no rule is copied, of which there may be thousands.
    package var listFiles: [String] {
        var files: Set<String> = []
        for index in rules.indices where rules[index].conditions.hasListFiles {
            files.formUnion(rules[index].conditions.listFiles)
        }
        return files.sorted()
    }
}

/// Looks every two seconds whether a file that a rule names has changed, and puts the new contents into effect. If they have a fault, the earlier ones
/// stay in force.
///
/// Used on the control thread. A thread of its own reads files, and releases what is no longer in force: half a million names take longer than a
/// worker or the control thread may pause.
package final class ListWatch {
    package typealias Continuation = (Result<ReadAccess, ProvisioningFault>) -> Void

    private let proxy: Proxy
    private let pacFiles: PACFiles
    private let inbox: Inbox
    private let repeating: RepeatingTimer
    private let calls = CallPool(name: "lists", threadsMax: 1, waitingMax: 16)
    private var files: [String: WatchedFile] = [:]
    /// Files that have changed since they were read.
    private var news: Set<String> = []
    private var isReading = false
    private var continuations: [UInt64: Continuation] = [:]
    private var lastNumber: UInt64 = 0
    private let retired = RetiredSnapshots()

    static let pause: Duration = .seconds(2)

    /// - Parameter pacFiles: those of the proxy: its next snapshot has them, too.
    package init(of proxy: Proxy, _ pacFiles: PACFiles, on loop: EventLoop) {
        self.proxy = proxy
        self.pacFiles = pacFiles
        inbox = loop.inbox
        repeating = RepeatingTimer(on: loop, every: ListWatch.pause)
    }

    package func start() {
        watch(proxy.snapshot.configuration.access.listFiles)
        repeating.start { [unowned self] in look() }
    }

    package func stop() {
        repeating.stop()
        calls.close()
    }

    /// Reads the files of `access` on the thread for lists, but those that are in force in their present version.
    ///
    /// - Parameter then: called on the control thread; at once if no file is named.
    package func read(_ access: AccessSettings, _ then: @escaping Continuation) {
        let earlier = proxy.snapshot.configuration.access
        guard !access.listFiles.isEmpty else { return then(ReadAccess.reading(access, after: earlier)) }
        lastNumber += 1
        continuations[lastNumber] = then
        let (watch, inbox, number) = (Handle(self), inbox, lastNumber)
        let isTaken = calls.submit(key: "read") {
            let result = ReadAccess.reading(access, after: earlier)
            inbox.post { watch.value?.finish(number, result) }
        }
        // There is no thread.
        if !isTaken { finish(number, ReadAccess.reading(access, after: earlier)) }
    }

    private func finish(_ number: UInt64, _ result: Result<ReadAccess, ProvisioningFault>) {
        continuations.removeValue(forKey: number)?(result)
    }

    /// Keeps a snapshot that is no longer in force until nobody else does, so that its lists are released on the thread for lists.
    package func retire(_ snapshot: Snapshot) {
        if !snapshot.configuration.access.listFiles.isEmpty { retired.add(snapshot) }
    }

    private func look() {
        if !retired.isEmpty { _ = calls.submit(key: "release") { [retired] in retired.release() } }
        let named = proxy.snapshot.configuration.access.listFiles
        guard !named.isEmpty || !files.isEmpty else { return }
        let now = MonotonicTime.read()
        for file in named where files[file]?.hasChanged(at: now) == true { news.insert(file) }
        watch(named)
        if !news.isEmpty, !isReading { readAgain() }
    }

    private func readAgain() {
        let changed = news.sorted()
        let snapshot = proxy.snapshot
        news = []
        isReading = true
        read(snapshot.configuration.access) { [unowned self] result in
            isReading = false
            // A reload came in between: it has read files as they were then, which may be before they changed.
            guard proxy.snapshot === snapshot else {
                news.formUnion(changed)
                return
            }
            do throws(ProvisioningFault) {
                let next = try makeSnapshot(
                    snapshot.configuration, pacFiles, access: try result.get(), after: snapshot)
                proxy.adopt(next)
                retire(snapshot)
                Diagnostics.info("access rules: \(changed.joined(separator: ", ")) has changed and was read")
            } catch {
                Diagnostics.warning("access rules: \(error); the earlier lists stay in force")
            }
        }
    }

    private func watch(_ named: [String]) {
        let now = MonotonicTime.read()
        for file in named where files[file] == nil { files[file] = WatchedFile(file, pause: .zero, now: now) }
        files = files.filter { named.contains($0.key) }
    }
}

/// Snapshots that are no longer in force. Any thread may use it.
private final class RetiredSnapshots: Sendable {
    private let snapshots = Locked<[Snapshot]>([])

    var isEmpty: Bool { snapshots.withLock { $0.isEmpty } }

    func add(_ snapshot: Snapshot) { snapshots.withLock { $0.append(snapshot) } }

    /// Releases those that nobody else uses. A worker may use one until it comes to the next one, a request until it ends.
    func release() {
        let unused = snapshots.withLock { snapshots in
            var unused: [Snapshot] = []
            for index in snapshots.indices.reversed() where isKnownUniquelyReferenced(&snapshots[index]) {
                unused.append(snapshots.remove(at: index))
            }
            return unused
        }
        _ = unused  // outside the lock
    }
}
