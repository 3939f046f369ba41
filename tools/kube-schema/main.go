// kube-schema prints the shape of the Kubernetes kinds that the embedded API serves: one line a field, with what the
// wire formats (JSON and protobuf) and strategic-merge patches depend on. A line with "~" is a message of its own in
// protobuf whose fields stand beside the others in JSON. Its output is the data file the simulator reads.
//
//	go run . > ../../testing/embedded-kube/src/schema/kinds.txt
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The kinds that are served, and the bodies that requests may carry.
var roots = []any{
	corev1.ConfigMap{}, corev1.Endpoints{}, corev1.Event{}, corev1.Namespace{}, corev1.Node{}, corev1.Pod{},
	corev1.Secret{}, corev1.Service{}, corev1.ServiceAccount{},
	appsv1.Deployment{}, apiextensionsv1.CustomResourceDefinition{},
	coordinationv1.Lease{}, discoveryv1.EndpointSlice{}, eventsv1.Event{},
	authenticationv1.TokenReview{}, authenticationv1.SelfSubjectReview{}, authenticationv1.TokenRequest{},
	authorizationv1.SubjectAccessReview{}, authorizationv1.SelfSubjectAccessReview{},
	authorizationv1.LocalSubjectAccessReview{}, authorizationv1.SelfSubjectRulesReview{},
	metav1.DeleteOptions{},
}

// Types with an encoding of their own.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():        "time",
	reflect.TypeFor[metav1.MicroTime]():   "microtime",
	reflect.TypeFor[resource.Quantity]():  "quantity",
	reflect.TypeFor[intstr.IntOrString](): "intstr",
	reflect.TypeFor[metav1.FieldsV1]():    "any",
	// Schemas of custom kinds hold values of any type.
	reflect.TypeFor[float64]():                                      "any",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "any",
}

var seen = map[reflect.Type]bool{}
var queue []reflect.Type

func pkg(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return parts[len(parts)-2] + "/" + parts[len(parts)-1]
}

func name(t reflect.Type) string {
	if s, ok := special[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + name(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + name(t.Elem())
	case reflect.Map:
		return "map:" + name(t.Elem())
	case reflect.Struct:
		if !seen[t] {
			seen[t] = true
			queue = append(queue, t)
		}
		return pkg(t) + "." + t.Name()
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		if t.PkgPath() != "" {
			return t.Kind().String() + "=" + pkg(t) + "." + t.Name()
		}
		return t.Kind().String()
	}
	fmt.Fprintf(os.Stderr, "no form for %v\n", t)
	os.Exit(1)
	return ""
}

func fields(t reflect.Type, inlined bool, out *[]string) {
	for f := range t.Fields() {
		tag := strings.Split(f.Tag.Get("json"), ",")
		number := "-"
		if parts := strings.Split(f.Tag.Get("protobuf"), ","); len(parts) > 1 {
			number = parts[1]
		}
		if f.Anonymous && tag[0] == "" {
			if number != "-" {
				*out = append(*out, fmt.Sprintf("  ~ %s %s", number, name(f.Type)))
			}
			fields(f.Type, true, out)
			continue
		}
		if tag[0] == "-" || tag[0] == "" {
			continue
		}
		if inlined {
			number = "-" // it counts in the message of its own
		}
		omit := "always"
		for _, o := range tag[1:] {
			if o == "omitempty" && omit != "omitzero" {
				omit = "omitempty"
			}
			if o == "omitzero" {
				omit = "omitzero"
			}
		}
		line := fmt.Sprintf("  %s %s %s %s", tag[0], number, omit, name(f.Type))
		if s := f.Tag.Get("patchStrategy"); s != "" {
			line += " patch=" + s
		}
		if k := f.Tag.Get("patchMergeKey"); k != "" {
			line += " key=" + k
		}
		*out = append(*out, line)
	}
}

func main() {
	for _, r := range roots {
		name(reflect.TypeOf(r))
	}
	var blocks []string
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		out := []string{name(t)}
		fields(t, false, &out)
		blocks = append(blocks, strings.Join(out, "\n"))
	}
	sort.Strings(blocks)
	fmt.Println("# Kubernetes v1.37 wire shapes, printed by tools/kube-schema; do not edit by hand.")
	fmt.Println(strings.Join(blocks, "\n"))
}
