package main

type doing int

const (
	doRun doing = iota
	doSet
	// Goes to `target` unless the condition holds.
	doUnless
	doJump
	doSleep
	// No driver of this agent has pipelines.
	doPipeline
)

// act is a step as it runs: branches are jumps.
type act struct {
	do doing
	// Of a statement in the script.
	statement  int
	variable   int
	expression expression
	target     int
}

// branches is an `if` without its end: the act that decides about its current branch, -1 after `else`, and the jumps to its end.
type branches struct {
	decides int
	jumps   []int
}

// compiler has the acts so far, and where they are.
type compiler struct {
	acts  []act
	open  []*branches
	piped bool
}

// compile turns steps into acts. `numbers`: each statement's number in the script by its number in the transaction; -1: it is the other arm's.
func compile(steps []step, numbers []int) ([]act, *Failure) {
	var c compiler
	for _, each := range steps {
		var failure *Failure
		switch each.do {
		case "run":
			if numbers[each.statement] >= 0 {
				c.acts = append(c.acts, act{do: doRun, statement: numbers[each.statement]})
			}
		case "set":
			c.acts = append(c.acts, act{do: doSet, variable: each.variable, expression: each.expression})
		case "sleep":
			c.acts = append(c.acts, act{do: doSleep, expression: each.expression})
		case "startpipeline", "syncpipeline", "endpipeline":
			failure = c.pipe(each.do)
		default:
			failure = c.branch(each)
		}
		if failure != nil {
			return nil, failure
		}
	}
	if len(c.open) > 0 || c.piped {
		return nil, noProgram("an `if` or a pipeline has no end")
	}
	return c.acts, nil
}

func (c *compiler) pipe(do string) *Failure {
	if c.piped == (do == "startpipeline") {
		return noProgram("the steps of pipelines don't follow one another")
	}
	c.piped = do != "endpipeline"
	c.acts = append(c.acts, act{do: doPipeline})
	return nil
}

func (c *compiler) branch(step step) *Failure {
	if step.do == "if" {
		c.open = append(c.open, &branches{})
		c.decide(step.expression)
		return nil
	}
	if len(c.open) == 0 {
		return noProgram("`elif`, `else` or `endif` without an `if` before it")
	}
	current := c.open[len(c.open)-1]
	if step.do == "endif" {
		c.open = c.open[:len(c.open)-1]
		if current.decides >= 0 {
			c.goHere(current.decides)
		}
		for _, jump := range current.jumps {
			c.goHere(jump)
		}
		return nil
	}
	if current.decides < 0 {
		return noProgram("a branch after `else`")
	}
	current.jumps = append(current.jumps, len(c.acts))
	c.acts = append(c.acts, act{do: doJump})
	c.goHere(current.decides)
	current.decides = -1
	if step.do == "elif" {
		c.decide(step.expression)
	}
	return nil
}

func (c *compiler) decide(condition expression) {
	c.open[len(c.open)-1].decides = len(c.acts)
	c.acts = append(c.acts, act{do: doUnless, expression: condition})
}

// goHere: that act goes to the next one to come.
func (c *compiler) goHere(act int) { c.acts[act].target = len(c.acts) }
