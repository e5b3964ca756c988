import Access
import Learning
import Message
import Server

/// `/learn` and what is below it. What a job requests is nobody's business but its administrator's, so all of it needs the right to change.
extension AdminRouter {
    func startLearning(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(SelectionError) {
            let job = try LearningStart(request.body).job(at: proxy.now)
            return begin(job)
        } catch {
            return .problem(400, error.message)
        }
    }

    private func begin(_ job: ActiveJob) -> AdminResponse {
        do throws(LearningBook.Refusal) {
            let complaint = try proxy.startLearning(job)
            var writer = JSONWriter()
            writer.object {
                job.writeMembers(to: &$0)
                if let complaint { $0.member("warning", complaint) }
            }
            return .json(writer.bytes)
        } catch {
            return .problem(error.status, error.text(of: job))
        }
    }

    func stopLearning(_ request: AdminRequest) -> AdminResponse {
        change(request) { job in
            proxy.stopLearning(job) ? .json(named("stopped", job)) : .problem(404, "the job \(job) does not learn")
        }
    }

    func forgetJournal(_ request: AdminRequest) -> AdminResponse {
        change(request) { job in
            proxy.forgetJournal(of: job)
                ? .json(named("forgotten", job)) : .problem(404, "nothing is known of the job \(job)")
        }
    }

    private func change(_ request: AdminRequest, _ body: (String) -> AdminResponse) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(SelectionError) { return body(try learningJob(request.body)) } catch {
            return .problem(400, error.message)
        }
    }

    private func named(_ name: String, _ job: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { $0.member(name, job) }
        return writer.bytes
    }

    func journals(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        let active = proxy.learning
        var writer = JSONWriter()
        writer.object {
            $0.key("jobs")
            $0.array { json in
                for journal in proxy.journals() {
                    json.object { object in
                        journal.writeSummary(to: &object, active.jobs.first { $0.job == journal.job })
                    }
                }
            }
        }
        return .json(writer.bytes)
    }

    func journal(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(SelectionError) {
            let job = try learningJob(ofQuery: request.query)
            guard let found = proxy.journal(of: job) else {
                return .problem(404, "nothing is known of the job \(job)")
            }
            return .json(found.journal.json(found.difference, proxy.learning.jobs.first { $0.job == job }))
        } catch {
            return .problem(400, error.message)
        }
    }
}

extension LearningBook.Refusal {
    fileprivate var status: UInt16 {
        switch self {
        case .running: 409
        case .tooManyJobs, .tooManyJournals: 503
        case .unknownListener: 400
        }
    }

    fileprivate func text(of asked: ActiveJob) -> String {
        let job = asked.job
        return switch self {
        case .unknownListener(let names):
            "no listener has the name \(asked.scope.listener ?? ""); there \(names.count == 1 ? "is" : "are") \(names.joined(separator: ", "))"
        case .running: "the job \(job) learns already; larder learn stop \(job) ends its run"
        case .tooManyJobs: "\(ActiveJobs.countMax) jobs learn already"
        case .tooManyJournals: "there are \(LearningBook.journalsMax) journals; forget some"
        }
    }
}
