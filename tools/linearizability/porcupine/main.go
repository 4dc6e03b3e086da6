// Checks a history of requests for linearizability, and draws what is not.
//
// usage: go run . HISTORY PAGE
//
// Two kinds of objects are checked, each by its own model: the status of each transfer, and each pair of
// Pockets that pay only each other. The model of a pair knows nothing of bills, prices or postings.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	never    = math.MaxInt64 // the return of what may take effect at any later time
	newest   = 8             // the transfers that a read of a Pocket shows
	patience = 10 * time.Minute
)

// A request is a line of the history; without a return its outcome is unknown.
type request struct {
	Do, Id, Kind string
	Client, Pair int
	Side         int // the Pocket that pays, or that is read
	Cents        int64
	Call         int64
	Return       *int64
	Answer       json.RawMessage
	after        string
}

func (r request) known() bool { return r.Return != nil }

func (r request) status() string {
	var status string
	must(json.Unmarshal(r.Answer, &status))
	return status
}

func (r request) operation(output any) porcupine.Operation {
	end := int64(never)
	if r.known() {
		end = *r.Return
	}
	return porcupine.Operation{ClientId: r.Client, Input: r, Output: output, Call: r.Call, Return: end}
}

// -- the status of one transfer ---------------------------------------------------------------

var ranks = map[string]int{"NONE": 0, "PENDING": 1, "COMPLETED": 2}

// A transfer only goes forward, by its request or by the worker. A look shows the status or the one that the
// worker just made of it; a repeated request is answered as the first time, which may be less than the status.
var transferModel = porcupine.Model{
	Init: func() any { return "NONE" },
	Step: func(state, input, output any) (bool, any) {
		was, is, asked := ranks[state.(string)], output.(string), input.(request)
		rank, possible := ranks[is]
		switch {
		case !possible:
			return false, state
		case asked.Do == "look":
			return rank == was || was == 1 && rank == 2, is
		case !asked.known():
			return true, furthest(state.(string), "PENDING")
		default:
			return rank > 0, furthest(state.(string), is)
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%s: %v", input.(request).Do, output) },
}

func furthest(one, other string) string {
	if ranks[one] > ranks[other] {
		return one
	}
	return other
}

// -- two Pockets ------------------------------------------------------------------------------

type pocket struct {
	In, Out int64
	Newest  [newest]string
}

type pair [2]pocket

func (p pocket) after(id string, in, out int64) pocket {
	after := pocket{In: p.In + in, Out: p.Out + out, Newest: [newest]string{id}}
	copy(after.Newest[1:], p.Newest[:newest-1])
	return after
}

// A transfer moves exactly its cents, once, and shows at the head of both lists; a read returns what is there.
var pairModel = porcupine.Model{
	Init: func() any { return pair{} },
	Step: func(state, input, output any) (bool, any) {
		now, asked := state.(pair), input.(request)
		switch asked.Do {
		case "transfer":
			if asked.after != "" && now[0].Newest[0] != asked.after {
				return false, now // a read refuses it later: without this, every order of concurrent transfers is tried
			}
			payer, payee := asked.Side, 1-asked.Side
			now[payer] = now[payer].after(asked.Id, 0, asked.Cents)
			now[payee] = now[payee].after(asked.Id, asked.Cents, 0)
			return true, now
		case "totals":
			return output == [2][2]int64{{now[0].In, now[0].Out}, {now[1].In, now[1].Out}}, now
		default:
			return output == now[asked.Side].Newest, now
		}
	},
	DescribeOperation: func(input, output any) string {
		asked := input.(request)
		if asked.Do == "transfer" {
			return fmt.Sprintf("%d pays %d: %.8s", asked.Side, asked.Cents, asked.Id)
		}
		return fmt.Sprintf("%s %d: %v", asked.Do, asked.Side, output)
	},
}

// -- the history ------------------------------------------------------------------------------

type history struct {
	transfers map[string][]porcupine.Operation
	effects   map[string]*effect
	pairs     map[int][]porcupine.Operation
	faults    []porcupine.Annotation
	unknown   int
}

func read(path string) history {
	found := history{map[string][]porcupine.Operation{}, map[string]*effect{}, map[int][]porcupine.Operation{}, nil, 0}
	file, err := os.Open(path)
	must(err)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line request
		must(json.Unmarshal(lines.Bytes(), &line))
		found.add(line)
	}
	must(lines.Err())
	delete(found.effects, "") // a list shorter than its model
	for _, each := range found.effects {
		if each.proven == nil {
			found.unknown++
		}
		found.pairs[each.asked.Pair] = append(found.pairs[each.asked.Pair], each.operation())
		if each.unanswered != nil {
			found.transfers[each.asked.Id] = append(found.transfers[each.asked.Id], each.unanswered.operation("PENDING"))
		}
	}
	return found
}

func (h *history) add(line request) {
	switch {
	case line.Do == "fault":
		h.faults = append(h.faults, porcupine.Annotation{
			Tag: "faults", Description: line.Kind, Start: line.Call, End: *line.Return})
	case line.Do == "transfer" || line.Do == "look" && line.known():
		h.effect(line.Id).narrow(line)
		if line.known() {
			h.transfers[line.Id] = append(h.transfers[line.Id], line.operation(line.status()))
		}
	case line.known() && line.Do == "totals":
		var totals [2][2]int64
		must(json.Unmarshal(line.Answer, &totals))
		h.pairs[line.Pair] = append(h.pairs[line.Pair], line.operation(totals))
	case line.known():
		var ids [newest]string
		must(json.Unmarshal(line.Answer, &ids))
		h.pairs[line.Pair] = append(h.pairs[line.Pair], line.operation(ids))
		for place, id := range ids {
			of := h.effect(id)
			of.prove(line.Return)
			if place+1 < newest && ids[place+1] != "" {
				of.after = ids[place+1]
			}
		}
	}
}

func (h *history) effect(id string) *effect {
	if h.effects[id] == nil {
		h.effects[id] = &effect{}
	}
	return h.effects[id]
}

// A transfer takes effect after its first request and every look that finds it not COMPLETED, and before the first
// answer that says it is, or list that shows it; without one, at any later time or never.
type effect struct {
	asked          request
	after          string // the transfer before it, of a list that shows both
	absent, proven *int64
	unanswered     *request // the first: those after it can do nothing that it cannot
}

func (e *effect) narrow(line request) {
	if line.Do == "transfer" && (e.asked.Id == "" || line.Call < e.asked.Call) {
		e.asked = line
	}
	if !line.known() && (e.unanswered == nil || line.Call < e.unanswered.Call) {
		e.unanswered = &line
	}
	switch {
	case !line.known():
	case line.status() == "COMPLETED":
		e.prove(line.Return)
	case line.Do == "look" && (e.absent == nil || line.Call > *e.absent):
		e.absent = &line.Call
	}
}

func (e *effect) prove(at *int64) {
	if e.proven == nil || *at < *e.proven {
		e.proven = at
	}
}

func (e *effect) operation() porcupine.Operation {
	asked := e.asked
	asked.Return, asked.after = e.proven, e.after
	if e.absent != nil {
		asked.Call = max(asked.Call, *e.absent)
	}
	return asked.operation(nil)
}

func (h history) check(name string, model porcupine.Model, operations []porcupine.Operation, page string) bool {
	result := porcupine.CheckOperationsTimeout(model, operations, patience)
	if result == porcupine.Ok {
		return true
	}
	fmt.Printf("%s of %d operations: %s\n", name, len(operations), result)
	if result == porcupine.Illegal {
		_, info := porcupine.CheckOperationsVerbose(model, operations, patience)
		info.AddAnnotations(h.faults)
		must(porcupine.VisualizePath(model, info, page))
		fmt.Println("drawn:", page)
	}
	return false
}

func main() {
	began := time.Now()
	h := read(os.Args[1])
	fine := true
	operations := 0
	for id, of := range h.transfers {
		operations += len(of)
		fine = fine && h.check("transfer "+id, transferModel, of, os.Args[2])
	}
	for number, of := range h.pairs {
		operations += len(of)
		fine = fine && h.check(fmt.Sprintf("pair %d", number), pairModel, of, os.Args[2])
	}
	verdict := "NOT linearizable, or not known to be"
	if fine {
		verdict = "linearizable"
	}
	fmt.Printf("%s: %d operations on %d transfers and %d pairs, %d transfers of unknown outcome, %d faults, %.1f s\n",
		verdict, operations, len(h.transfers), len(h.pairs), h.unknown, len(h.faults), time.Since(began).Seconds())
	if !fine {
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
