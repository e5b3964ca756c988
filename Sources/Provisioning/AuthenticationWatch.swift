import Accounts
package import Authentication
package import EventLoop
package import LogIns
import Message
import Routing
package import Server
import Tokens

/// Looks every two seconds whether a file of `access.authentication` has changed, and reads it then; and fetches the keys of tokens that come
/// from a URL. Used on the control thread.
///
/// What cannot be read changes nothing: what was read before stays in use. Keys of a URL stay for a bounded time.
package final class AuthenticationWatch {
    /// Puts what was read into effect.
    package typealias Adoption = (AuthenticationMaterial, AuthenticationShelf) -> Void

    private let loop: EventLoop
    private let snapshot: () -> Snapshot
    private let adopt: Adoption
    private let fetch: PACFetcher
    private let repeating: RepeatingTimer
    private var shelf: AuthenticationShelf?
    private var files: [WatchedFile] = []
    /// What was said about the files last: it is said once.
    private var complaint: String?
    private var download: PACDownload?
    /// The keys that were fetched last. Nil: none, or they are too old.
    private var keys: JSONWebKeySet?
    private var lastFetch: MonotonicTime?

    private static let pause = Duration.seconds(2)
    /// A token with an unknown key has the keys fetched, so often at most: anybody can make up such tokens.
    private static let wishPause = Duration.seconds(5)

    package init(
        on loop: EventLoop, of snapshot: @escaping () -> Snapshot, fetch: @escaping PACFetcher,
        adopt: @escaping Adoption
    ) {
        self.loop = loop
        repeating = RepeatingTimer(on: loop, every: AuthenticationWatch.pause)
        self.snapshot = snapshot
        self.fetch = fetch
        self.adopt = adopt
    }

    package func start() {
        look()
        repeating.start { [unowned self] in look() }
    }

    package func stop() { repeating.stop() }

    private func look() {
        let snapshot = snapshot()
        let shelf = snapshot.authentication
        let settings = snapshot.configuration.access.authentication
        let now = MonotonicTime.read()
        var isDue = false
        if shelf !== self.shelf {
            // A new configuration. What was written since it was read is seen because everything is read once more.
            self.shelf = shelf
            files = settings.files.map { WatchedFile($0, pause: AuthenticationWatch.pause, now: now) }
            complaint = nil
            follow(settings.bearer, known: shelf.material.tokenKeys)
            isDue = !files.isEmpty
        }
        for index in files.indices where files[index].hasChanged(at: now) { isDue = true }
        if case .url(let url) = settings.bearer.keys { lookAtKeys(url, settings.bearer, shelf, snapshot, now) }
        let material: AuthenticationMaterial
        if isDue {
            guard let read = read(settings) else { return }
            material = read
        } else {
            var present = shelf.material
            if case .url = settings.bearer.keys { present.tokenKeys = keys }
            material = present
        }
        guard material != shelf.material else { return }
        adopt(material, shelf)
        guard isDue else { return }
        Diagnostics.info("access.authentication: a file has changed and was read")
        for remark in remarks(on: material, settings) { Diagnostics.warning(remark) }
    }

    private func read(_ settings: AuthenticationSettings) -> AuthenticationMaterial? {
        do throws(ProvisioningFault) {
            let material = try Preparation.throwing { [keys] preparation throws(ProvisioningFault) in
                try readAuthentication(settings, fetched: keys, &preparation)
            }
            complaint = nil
            return material
        } catch {
            if complaint != error.description {
                Diagnostics.warning("\(error); what was read before stays in use")
            }
            complaint = error.description
            return nil
        }
    }

    // MARK: keys of a URL

    private func follow(_ settings: BearerSettings, known: JSONWebKeySet?) {
        guard case .url(let url) = settings.keys else {
            (download, keys) = (nil, nil)
            return
        }
        let now = MonotonicTime.read().sinceStart
        if download?.url == url {
            download?.adopt(refresh: settings.keysRefresh, now: now)
            // A reload is also how operators say that keys have changed.
            download?.expedite()
        } else {
            download = PACDownload(url, refresh: settings.keysRefresh)
            keys = known
        }
    }

    private func lookAtKeys(
        _ url: TargetURI, _ settings: BearerSettings, _ shelf: AuthenticationShelf, _ snapshot: Snapshot,
        _ now: MonotonicTime
    ) {
        if keys != nil, download?.failure != nil, let age = download?.age(now: now.sinceStart), age > settings.keysKept
        {
            keys = nil
            Diagnostics.error(
                "the keys of \(url.withoutQuery) are too old: no signed token is accepted until they are fetched")
        }
        let isFresh = lastFetch.map { now < $0.advanced(by: AuthenticationWatch.wishPause) } ?? false
        if !isFresh, shelf.takeWish() { download?.expedite() }
        guard let due = download?.begin(now: now.sinceStart) else { return }
        lastFetch = now
        let (watch, inbox) = (Handle(self), loop.inbox)
        fetch(due, AuthenticationWatch.fetchTime, snapshot.configuration.tls.caFile) { answer in
            inbox.post { watch.value?.fetched(answer, from: url) }
        }
    }

    private static let fetchTime = Duration.seconds(15)

    private func fetched(_ answer: PACDownload.Answer, from url: TargetURI) {
        // A reload may have named another URL meanwhile.
        guard download?.url == url else { return }
        let (now, wallTime) = (MonotonicTime.read().sinceStart, WallTime(ticks: loop.wallTicks))
        switch download?.answered(answer, now: now, wallTime: wallTime) {
        case .read(let text, let version):
            do throws(KeySetFault) {
                keys = try JSONWebKeySet(parsing: text, allowsShared: false)
                download?.accepted(version, now: now, wallTime: wallTime)
                Diagnostics.debug("the keys of \(url.withoutQuery) were fetched")
            } catch {
                let isNews = download?.refused(.unusable(error.text), now: now, wallTime: wallTime)
                if isNews == true { complain(about: url, error.text) }
            }
        case .keep(let isNews):
            if isNews { Diagnostics.info("the keys of \(url.withoutQuery) can be fetched again") }
        case .failed(let fault, let isNews):
            if isNews { complain(about: url, fault.text) }
        case nil: return
        }
        look()
    }

    private func complain(about url: TargetURI, _ text: String) {
        let rest = keys == nil ? "no signed token is accepted" : "the keys that were fetched before stay in use"
        Diagnostics.warning("the keys of \(url.withoutQuery) cannot be fetched: \(text); \(rest)")
    }
}
