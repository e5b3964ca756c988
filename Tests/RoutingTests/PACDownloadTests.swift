import Message
import Routing
import Testing

private func url(_ text: String) -> TargetURI { TargetURI(text.utf8)! }

private let here = url("https://wpad.example/proxy.pac")
private let version = PACDownload.Version(from: here, entityTag: "\"1\"")
private let script = Array("function FindProxyForURL() {}".utf8)

@Suite("A PAC file from a URL: one response") struct PACFetchTests {
    static let hops: [(status: Int, location: String?, hop: PACFetch.Hop)] = [
        (200, nil, .read), (304, nil, .unchanged), (404, nil, .fail(.status(404))), (206, nil, .fail(.status(206))),
        (301, "/other.pac", .follow(url("https://wpad.example/other.pac"))),
        (302, "https://b.example/", .follow(url("https://b.example/"))),
        (303, "//b.example/a", .follow(url("https://b.example/a"))), (307, "a", .follow(url("https://wpad.example/a"))),
        (308, "http://wpad.example/proxy.pac", .fail(.redirectToPlain)), (302, nil, .fail(.redirectNowhere)),
        (302, "ftp://b.example/", .fail(.redirectNowhere)), (300, "/a", .fail(.status(300))),
    ]
    @Test(arguments: hops) func `a response is read, followed or a fault`(
        _ row: (status: Int, location: String?, hop: PACFetch.Hop)
    ) {
        let fetch = PACFetch(here, version: version)
        #expect(fetch.hop(at: here, status: row.status, location: row.location, followed: 0) == row.hop)
    }

    @Test func `five redirects are followed, and http may lead to https`() {
        let fetch = PACFetch(url("http://wpad.example/"))
        func hop(_ followed: Int) -> PACFetch.Hop {
            fetch.hop(at: fetch.url, status: 302, location: "https://wpad.example/", followed: followed)
        }
        #expect(hop(4) == .follow(url("https://wpad.example/")))
        #expect(hop(5) == .fail(.redirects))
    }

    @Test func `validators are for the URL that sent them, and 304 is an answer to them alone`() {
        let moved = PACFetch(here, version: .init(from: url("https://b.example/"), entityTag: "\"1\""))
        #expect(moved.conditions(at: here).isEmpty)
        #expect(moved.conditions(at: url("https://b.example/")).map(\.name) == ["If-None-Match"])
        #expect(moved.hop(at: here, status: 304, location: nil, followed: 0) == .fail(.status(304)))
        let dated = PACFetch(here, version: .init(from: here, lastModified: "Mon, 01 Jan 2024 00:00:00 GMT"))
        #expect(dated.conditions(at: here).map(\.value) == ["Mon, 01 Jan 2024 00:00:00 GMT"])
        #expect(dated.conditions(at: here).map(\.name) == ["If-Modified-Since"])
        #expect(PACFetch(here, version: .init(from: here)).conditions(at: here).isEmpty)
    }

    @Test func `a source is a path or a URL, and shows no query`() {
        #expect(PACSource("/etc/proxy.pac") == .file("/etc/proxy.pac"))
        #expect(PACSource("HTTPS://WPAD.example")?.description == "https://wpad.example/")
        #expect(
            PACSource("http://wpad.example:8080/a.pac?key=secret")?.description == "http://wpad.example:8080/a.pac?…")
        for text in ["", "ftp://a/b", "http://me:secret@wpad.example/", "http://", "https://a b/", "file:///a.pac"] {
            #expect(PACSource(text) == nil, "\(text)")
        }
    }
}

@Suite("A PAC file from a URL: when it is fetched, and what stays") struct PACDownloadTests {
    private let time = WallTime(secondsSinceEpoch: 1_767_225_600)
    private func begun(_ now: Duration = .zero) -> PACDownload {
        var download = PACDownload(here, refresh: .seconds(3600))
        let fetch = download.begin(now: now)
        #expect(fetch == PACFetch(here))
        return download
    }
    private func accepted() -> PACDownload {
        var download = begun()
        #expect(download.answered(.script(script, version), now: .zero, wallTime: time) == .read(script, version))
        download.accepted(version, now: .zero, wallTime: time)
        return download
    }

    @Test func `a script that is accepted is asked for again after the refresh, with its validators`() {
        var download = accepted()
        #expect(download.version == version && download.fetchedAt == time && download.failure == nil)
        #expect(download.begin(now: .seconds(3599)) == nil)
        #expect(download.begin(now: .seconds(3600)) == PACFetch(here, version: version))
        #expect(download.begin(now: .seconds(9999)) == nil, "one fetch at a time")
        let later = WallTime(secondsSinceEpoch: 1_767_229_200)
        #expect(download.answered(.unchanged, now: .seconds(3601), wallTime: later) == .keep(isNews: false))
        #expect(download.fetchedAt == later && download.version == version)
        #expect(download.begin(now: .seconds(7200)) == nil && download.begin(now: .seconds(7201)) != nil)
    }

    @Test(arguments: [-86_400, 86_400] as [Int64])
    func `how old a version is does not depend on the time of day`(_ change: Int64) {
        var download = accepted()
        #expect(begun().age(now: .seconds(9)) == nil)
        #expect(download.age(now: .seconds(3600)) == .seconds(3600))
        _ = download.begin(now: .seconds(3600))
        _ = download.answered(.failed(.tooLong), now: .seconds(3601), wallTime: time + Seconds(change))
        #expect(download.age(now: .seconds(3601)) == .seconds(3601), "a failure confirms nothing")
        _ = download.begin(now: .seconds(7200))
        _ = download.answered(.unchanged, now: .seconds(7201), wallTime: time + Seconds(change))
        #expect(download.age(now: .seconds(7202)) == .seconds(1))
    }

    @Test func `a failure keeps the version, and is retried sooner, after growing pauses`() {
        var download = accepted()
        var now = Duration.seconds(3600)
        for (index, pause) in [10, 20, 40, 80].enumerated() {
            #expect(download.begin(now: now) != nil)
            let step = download.answered(.failed(.status(503)), now: now, wallTime: time)
            #expect(step == .failed(.status(503), isNews: index == 0), "what is known already is no news")
            #expect(download.version == version && download.failure?.since == time)
            #expect(download.begin(now: now + .seconds(pause) - .milliseconds(1)) == nil)
            now += .seconds(pause)
        }
        #expect(download.begin(now: now) != nil)
        #expect(
            download.answered(.failed(.tooLong), now: now, wallTime: WallTime(secondsSinceEpoch: 9))
                == .failed(.tooLong, isNews: true))
        #expect(download.failure?.since == time, "since the first of them")
        #expect(download.begin(now: now + .seconds(160)) != nil)
        #expect(download.answered(.unchanged, now: now, wallTime: time) == .keep(isNews: true))
        #expect(download.failure == nil)
    }

    @Test func `no pause is longer than the refresh`() {
        var download = PACDownload(here, refresh: .seconds(30))
        var now = Duration.zero
        for _ in 1...40 {
            #expect(download.begin(now: now) != nil)
            _ = download.answered(.failed(.redirects), now: now, wallTime: time)
            now += .seconds(30)
        }
    }

    @Test func `a script that cannot be used changes nothing, and its validators are not sent`() {
        var download = accepted()
        _ = download.begin(now: .seconds(3600))
        let other = PACDownload.Version(from: here, entityTag: "\"2\"")
        _ = download.answered(.script([1], other), now: .seconds(3600), wallTime: time)
        #expect(download.begin(now: .seconds(9999)) == nil, "it is being read")
        let isNews = download.refused(.unusable("no function"), now: .seconds(3600), wallTime: time)
        #expect(isNews && download.version == version)
        #expect(download.begin(now: .seconds(3610)) == PACFetch(here, version: version))
    }

    @Test func `a reload fetches at once, and a shorter refresh counts at once`() {
        var download = accepted()
        download.adopt(refresh: .seconds(60), now: .seconds(100))
        #expect(download.begin(now: .seconds(159)) == nil)
        download.expedite()
        #expect(download.begin(now: .seconds(159)) != nil)
        download.expedite()
        #expect(download.begin(now: .seconds(159)) == nil, "it is under way")
    }
}
